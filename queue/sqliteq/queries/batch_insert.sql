INSERT INTO batches (id, worker, started_at, lease_ms, jobs) VALUES (?, ?, ?, ?, ?);
