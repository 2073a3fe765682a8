DELETE FROM logs WHERE seq = ?;
