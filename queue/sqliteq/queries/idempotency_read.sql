SELECT seq, birth, expires_at, fingerprint FROM idempotency WHERE tenant = ? AND key = ?;
