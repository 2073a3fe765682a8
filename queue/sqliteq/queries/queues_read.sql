SELECT id, tenant, name, used, served, weight, priority, paused, max_running, max_per_key, rate FROM queues;
