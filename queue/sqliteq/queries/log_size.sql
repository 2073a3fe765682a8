SELECT coalesce(sum(length(CAST(message AS BLOB))), 0) FROM logs WHERE seq = ? AND run = ? AND attempt = ?;
