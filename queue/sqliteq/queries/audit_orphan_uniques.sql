SELECT count(*) FROM uniques AS u WHERE expires_at IS NULL AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.seq = u.seq);
