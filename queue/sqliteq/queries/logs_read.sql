SELECT n, run, attempt, at, level, message FROM logs WHERE seq = ? AND n > ? ORDER BY n LIMIT ?;
