DELETE FROM batches;
