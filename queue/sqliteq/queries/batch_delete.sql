DELETE FROM batches WHERE id = ?;
