SELECT key, value, revision FROM records
WHERE kind = ?1 AND key > ?2 AND key >= ?3 AND substr(CAST(key AS BLOB), 1, length(CAST(?3 AS BLOB))) = CAST(?3 AS BLOB)
ORDER BY key LIMIT ?4;
