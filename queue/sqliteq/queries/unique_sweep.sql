DELETE FROM uniques WHERE (tenant, key) IN
  (SELECT tenant, key FROM uniques WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?);
