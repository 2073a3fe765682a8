INSERT OR IGNORE INTO tenants (id, name) VALUES (?, ?);
