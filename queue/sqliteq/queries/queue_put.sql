INSERT INTO queues (id, tenant, name, used, served, weight, priority, paused) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET used = excluded.used, served = excluded.served, weight = excluded.weight,
  priority = excluded.priority, paused = excluded.paused;
