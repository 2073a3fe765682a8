SELECT fin, seq, queue, priority, outcome, birth, finished_at, expires_at, record, state
FROM finished WHERE tenant = ? AND seq = ?;
