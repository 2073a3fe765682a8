SELECT min(expires_at) FROM idempotency;
