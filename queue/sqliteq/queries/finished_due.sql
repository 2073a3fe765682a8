SELECT fin, seq, queue, finished_at FROM finished WHERE fin BETWEEN ? AND ? ORDER BY fin LIMIT ?;
