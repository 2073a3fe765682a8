SELECT count(*) FROM (SELECT DISTINCT seq FROM logs) AS l
WHERE NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.seq = l.seq) AND l.seq NOT IN (SELECT seq FROM finished);
