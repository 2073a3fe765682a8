SELECT id, worker, started_at, lease_ms, jobs FROM batches ORDER BY id;
