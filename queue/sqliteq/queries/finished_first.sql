SELECT fin, finished_at FROM finished WHERE fin >= ? ORDER BY fin LIMIT 1;
