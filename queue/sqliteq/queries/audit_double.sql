SELECT count(*) FROM jobs AS j WHERE j.seq IN (SELECT seq FROM finished);
