-- A replayed job.
INSERT INTO jobs (seq, queue, priority, birth, pos, expires_at, record, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?);
