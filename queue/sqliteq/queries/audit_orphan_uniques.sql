SELECT count(*) FROM uniques AS u WHERE NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.seq = u.seq);
