SELECT count(*) FROM finished WHERE fin BETWEEN ? AND ?;
