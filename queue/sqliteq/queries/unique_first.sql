SELECT min(expires_at) FROM uniques WHERE expires_at IS NOT NULL;
