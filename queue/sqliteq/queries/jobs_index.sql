SELECT seq, queue, priority, pos, run_at, expires_at, state FROM jobs ORDER BY seq;
