SELECT data FROM blobs WHERE key = ?;
