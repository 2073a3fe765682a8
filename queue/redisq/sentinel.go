package redisq

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

// sentinels is the part of a URL that names a master through its Sentinels.
type sentinels struct {
	addresses      []string
	master         string
	user, password string // at the Sentinels
}

// Bounds of a Sentinel URL, and the port when none is named.
const (
	sentinelsMost       = 32
	sentinelPort        = "26379"
	sentinelMasterBytes = 128
)

// splitSentinel takes the Sentinels and the master out of a URL and leaves one that names a server, with the first Sentinel in the
// place of its host. A URL of another kind stays as it is. (net/url reads no list of hosts.)
func splitSentinel(text string) (string, *sentinels, error) {
	invalid := func(format string, args ...any) (string, *sentinels, error) {
		return "", nil, &queue.InvalidError{Field: "redis url", Reason: fmt.Sprintf(format, args...)}
	}
	scheme, rest, _ := strings.Cut(text, "://")
	scheme, ok := strings.CutSuffix(scheme, "+sentinel")
	if !ok || scheme != "redis" && scheme != "rediss" {
		return text, nil, nil
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	s := &sentinels{}
	for h := range strings.SplitSeq(hosts, ",") {
		host, port, err := net.SplitHostPort(h)
		if err != nil { // without a port, an address of IP version 6 in brackets too
			host, port = strings.TrimSuffix(strings.TrimPrefix(h, "["), "]"), sentinelPort
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || host == "" || strings.ContainsAny(host, " @[]") {
			return invalid("Sentinel %d of the list must be host or host:port, port 1 to 65535", len(s.addresses)+1)
		}
		s.addresses = append(s.addresses, net.JoinHostPort(host, port))
	}
	if len(s.addresses) > sentinelsMost {
		return invalid("names %d Sentinels, at most %d can be named", len(s.addresses), sentinelsMost)
	}
	path, query, hasQuery := strings.Cut(tail, "?")
	master, db, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if master == "" || len(master) > sentinelMasterBytes || strings.ContainsAny(master, "%# ") {
		return invalid("must name the master behind the Sentinels: redis+sentinel://host:port/master[/db], 1 to %d characters", sentinelMasterBytes)
	}
	s.master = master
	server := scheme + "://" + user + s.addresses[0]
	if db != "" {
		server += "/" + db
	}
	if hasQuery {
		server += "?" + query
	}
	return server, s, nil
}

// options are those of the client that asks the Sentinels; c is what the rest of the URL says.
func (s *sentinels) options(c *redis.Options) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: s.master, SentinelAddrs: s.addresses, SentinelUsername: s.user, SentinelPassword: s.password,
		Username: c.Username, Password: c.Password, DB: c.DB, TLSConfig: c.TLSConfig, ClientName: c.ClientName,
		Protocol: c.Protocol, DisableIdentity: c.DisableIdentity, ContextTimeoutEnabled: c.ContextTimeoutEnabled,
		MaxRetries: c.MaxRetries, MinRetryBackoff: c.MinRetryBackoff, MaxRetryBackoff: c.MaxRetryBackoff,
		DialTimeout: c.DialTimeout, DialerRetries: c.DialerRetries, ReadTimeout: c.ReadTimeout, WriteTimeout: c.WriteTimeout,
		PoolFIFO: c.PoolFIFO, PoolSize: c.PoolSize, PoolTimeout: c.PoolTimeout, MinIdleConns: c.MinIdleConns, MaxIdleConns: c.MaxIdleConns,
		MaxActiveConns: c.MaxActiveConns, ConnMaxIdleTime: c.ConnMaxIdleTime, ConnMaxLifetime: c.ConnMaxLifetime, PipelinePoolSize: -1,
	}
}
