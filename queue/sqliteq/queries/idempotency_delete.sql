DELETE FROM idempotency WHERE tenant = ? AND key = ? AND seq = ?;
