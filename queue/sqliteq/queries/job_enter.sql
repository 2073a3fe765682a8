-- A job re-enters its queue: a new place, a new due time, a new state.
UPDATE jobs SET pos = ?, run_at = ?, state = ? WHERE seq = ?;
