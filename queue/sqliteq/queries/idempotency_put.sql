INSERT OR REPLACE INTO idempotency (tenant, key, seq, birth, expires_at, fingerprint) VALUES (?, ?, ?, ?, ?, ?);
