INSERT INTO uniques (tenant, key, seq, birth) VALUES (?, ?, ?, ?);
