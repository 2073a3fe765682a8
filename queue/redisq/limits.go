package redisq

import "github.com/taskhost/taskhost/queue"

// This store does not keep caps, rates and concurrency keys yet. It refuses them, rather than take a promise it would break.

func unsupported(prefix, field string) error {
	if prefix != "" {
		field = prefix + "." + field
	}
	return &queue.InvalidError{Field: field, Reason: "is not supported by the Redis store yet; remove it, or use the embedded store"}
}

func unlimited(c queue.Scheduling) error {
	for name, q := range c.Queues {
		if err := unlimitedQueue("queues."+name, q); err != nil {
			return err
		}
	}
	for name, t := range c.Tenants {
		if t.MaxRunning != nil {
			return unsupported("tenants."+name, "max_running")
		}
	}
	return nil
}

func unlimitedQueue(prefix string, q queue.QueueSettings) error {
	switch {
	case q.MaxRunning != nil:
		return unsupported(prefix, "max_running")
	case q.MaxPerKey != nil:
		return unsupported(prefix, "max_per_key")
	case q.Rate != nil:
		return unsupported(prefix, "rate")
	}
	return nil
}

func unkeyed(s *queue.JobSpec) error {
	if s.ConcurrencyKey != "" {
		return unsupported("", "concurrency_key")
	}
	return nil
}
