SELECT id, tenant, name, used, served, weight, priority, paused FROM queues;
