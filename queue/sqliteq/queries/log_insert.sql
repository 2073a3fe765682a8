INSERT INTO logs (seq, n, run, attempt, at, level, message) VALUES (?, ?, ?, ?, ?, ?, ?);
