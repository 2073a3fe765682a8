package wire

import (
	"time"

	"github.com/taskhost/taskhost/config"
	"github.com/taskhost/taskhost/handlers"
	"github.com/taskhost/taskhost/host"
	"github.com/taskhost/taskhost/host/httpapi"
	"github.com/taskhost/taskhost/queue"
)

// limits are what one job may store.
func limits(d config.Defaults) queue.Limits {
	l := queue.DefaultLimits()
	l.PayloadBytes, l.ResultBytes = int(d.Payload), int(d.Result)
	return l
}

func backoff(b config.Backoff) queue.Backoff {
	return queue.Backoff{Base: b.Base, Max: b.Max, Jitter: queue.Jitter(b.Jitter)}
}

// scheduling is the configured half of how queues are served.
func scheduling(c *config.Config) queue.Scheduling {
	s := queue.Scheduling{
		Queues:             map[string]queue.QueueSettings{},
		Tenants:            map[string]queue.TenantSettings{},
		MaxConsecutiveHigh: c.Scheduling.MaxConsecutiveHigh,
		ChargeByTime:       c.Scheduling.ChargeByTime,
		Retention:          queue.Retention{Succeeded: c.Retention.Succeeded, Dead: c.Retention.Dead, Count: c.Retention.Count, DeadCount: c.Retention.DeadCount, Logs: queue.LogRetention(c.Retention.Logs)},
	}
	if c.Retention.Succeeded == 0 { // "none"; in the queue 0 means the default
		s.Retention.Succeeded = -1
	}
	for name, q := range c.Queues {
		s.Queues[name] = queue.QueueSettings{Weight: q.Weight, Priority: q.Priority, Paused: q.Paused, MaxRunning: q.MaxRunning, MaxPerKey: q.MaxPerKey,
			Rate: (*queue.Rate)(q.Rate)}
	}
	for name, t := range c.Tenants {
		s.Tenants[name] = queue.TenantSettings{Weight: t.Weight, MaxRunning: t.MaxRunning}
	}
	return s
}

func view(c *config.Config) queue.View {
	if len(c.Worker.Queues) == 1 && c.Worker.Queues[0] == "*" {
		return queue.View{}
	}
	return queue.View{Queues: c.Worker.Queues}
}

func hostOptions(c *config.Config) host.Options {
	l := limits(c.Defaults)
	drain := c.Worker.Drain
	if drain == 0 {
		drain = -1 // not at all; for the host 0 means the default
	}
	return host.Options{
		View: view(c), Concurrency: int(c.Worker.Concurrency), Lease: c.Worker.Lease, Drain: drain, HandlerWait: c.Worker.HandlerWait,
		Defaults: host.Defaults{
			Timeout: c.Defaults.Timeout, MaxAttempts: c.Defaults.MaxAttempts, Backoff: backoff(c.Defaults.Backoff),
			MemoryBytes: int64(c.Defaults.Memory), ResultBytes: l.ResultBytes, LogBytes: l.LogBytes, CheckpointBytes: l.CheckpointBytes,
			Fuel: c.Defaults.Fuel,
		},
		Limits: l, NoWorker: !c.HasRole(config.RoleWorker), Shared: config.IsRedis(c.Store),
	}
}

func apiDefaults(d config.Defaults) httpapi.Defaults {
	return httpapi.Defaults{MaxAttempts: d.MaxAttempts, Backoff: backoff(d.Backoff)}
}

func handlerLimits(d config.Defaults) handlers.Limits {
	l := limits(d)
	return handlers.Limits{
		MemoryBytes: int64(d.Memory), ResultBytes: l.ResultBytes, LogBytes: l.LogBytes, CheckpointBytes: l.CheckpointBytes, Timeout: d.Timeout,
		Fuel: d.Fuel,
	}
}

// How long parts may take to end once the host has stopped.
const (
	stopAPIWithin     = 5 * time.Second // requests under way
	stopRuntimeWithin = 2 * time.Second // jobs that did not stop; then their processes are killed
)
