SELECT seq, queue, priority, birth, pos, run_at, expires_at, record, state FROM jobs WHERE seq > ? AND queue = ? ORDER BY seq;
