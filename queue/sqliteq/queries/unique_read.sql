SELECT seq, birth FROM uniques WHERE tenant = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?);
