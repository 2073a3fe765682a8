SELECT fin, seq, queue, priority, outcome, birth, finished_at, expires_at, record, state
FROM finished INDEXED BY finished_dead WHERE outcome = 5 AND tenant = ? AND seq < ? ORDER BY seq DESC;
