SELECT count(*) FROM blobs AS b
WHERE NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.seq = b.key / 4) AND b.key / 4 NOT IN (SELECT seq FROM finished);
