UPDATE jobs SET state = ? WHERE seq = ?;
