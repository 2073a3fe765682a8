INSERT INTO queues (id, tenant, name, used, served, weight, priority, paused, max_running, max_per_key, rate)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET used = excluded.used, served = excluded.served, weight = excluded.weight,
  priority = excluded.priority, paused = excluded.paused, max_running = excluded.max_running,
  max_per_key = excluded.max_per_key, rate = excluded.rate;
