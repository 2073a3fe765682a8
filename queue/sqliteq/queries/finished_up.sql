SELECT fin, seq, queue, priority, outcome, birth, finished_at, expires_at, record, state
FROM finished INDEXED BY finished_job WHERE tenant = ? AND seq > ? ORDER BY seq;
