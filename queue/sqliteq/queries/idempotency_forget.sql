DELETE FROM idempotency WHERE seq = ?;
