package redisq

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

// server is what the start-up probes found.
type server struct {
	version    string
	durability string
}

// versionMin is the first Redis with script flags.
const versionMin = 7

// info reads INFO as a table.
func info(text string) map[string]string {
	m := make(map[string]string)
	for line := range strings.SplitSeq(text, "\n") {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[k] = v
		}
	}
	return m
}

// probe looks whether the server can hold jobs.
func (s *Store) probe(ctx context.Context) error {
	text, err := s.client.Info(ctx, "server", "memory", "persistence", "replication").Result()
	if err != nil {
		return s.failure(ctx, "info", err)
	}
	m := info(text)
	unfit := func(reason string) error { return &queue.InvalidError{Field: "redis", Reason: reason} }
	s.server.version = m["redis_version"]
	if major, _, _ := strings.Cut(m["redis_version"], "."); atoi(major) < versionMin {
		return unfit(fmt.Sprintf("version %s is too old: %d.0 or newer is needed", m["redis_version"], versionMin))
	}
	if m["redis_mode"] == "cluster" {
		return unfit("the server is a cluster node; Redis Cluster is not supported yet")
	}
	if m["role"] == "slave" {
		return unfit("the server is a replica; name its master")
	}
	if policy := m["maxmemory_policy"]; policy != "noeviction" {
		if !s.o.AllowEviction {
			return unfit(fmt.Sprintf("maxmemory-policy is %s: Redis would throw jobs away when it is full; set it to noeviction", policy))
		}
		s.o.Logger.Warn("redis may evict jobs when it is full", "maxmemory-policy", policy)
	}
	s.server.durability = s.durability(ctx, m)
	// Real scripts tell at once about rights that are missing.
	if err := s.checkMode(ctx); err != nil {
		return err
	}
	if _, err := s.run(ctx, "due", "", 0, waitMost.Milliseconds()); err != nil {
		return err
	}
	return nil
}

// durability says in one line what an acknowledged enqueue survives.
func (s *Store) durability(ctx context.Context, m map[string]string) string {
	setting := func(name string) string {
		v, err := s.client.ConfigGet(ctx, name).Result()
		if err != nil {
			return "" // CONFIG is often not allowed
		}
		return v[name]
	}
	switch {
	case m["aof_enabled"] == "1":
		switch fsync := setting("appendfsync"); fsync {
		case "always":
			return "appendonly, fsync always: an acknowledged enqueue survives a crash of Redis and of its machine"
		case "everysec":
			return "appendonly, fsync every second: an acknowledged enqueue survives a crash of Redis; a crash of its machine loses up to 2 s"
		case "no":
			return "appendonly, no fsync: an acknowledged enqueue survives a crash of Redis; a crash of its machine loses what its system had not written"
		default:
			return "appendonly, fsync unknown (CONFIG GET is not allowed)"
		}
	case setting("save") != "":
		return "snapshots only (save " + setting("save") + "): a crash of Redis loses what came after the last one; set appendonly yes"
	}
	return "none: a restart of Redis loses every job; set appendonly yes"
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// connected tells the outage which run of the server a new connection reached.
func (s *Store) connected(ctx context.Context, c *redis.Conn) error {
	text, err := c.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	s.outage.met(info(text)["run_id"])
	return nil
}
