INSERT OR REPLACE INTO records (kind, key, revision, value) VALUES (?, ?, ?, ?);
