SELECT run_at FROM jobs WHERE seq = ?;
