SELECT id, name FROM tenants;
