DELETE FROM finished WHERE fin = ?;
