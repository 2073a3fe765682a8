SELECT seq, queue, priority, birth, pos, run_at, expires_at, record, state FROM jobs WHERE seq > ? ORDER BY seq;
