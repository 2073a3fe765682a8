INSERT OR REPLACE INTO blobs (key, data) VALUES (?, ?);
