UPDATE jobs SET pos = ?, run_at = NULL WHERE seq = ?;
