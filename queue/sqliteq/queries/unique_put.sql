-- Over a key whose window is over, too.
INSERT OR REPLACE INTO uniques (tenant, key, seq, birth, expires_at) VALUES (?, ?, ?, ?, ?);
