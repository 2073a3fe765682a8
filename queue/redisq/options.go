package redisq

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

// Options of Open.
type Options struct {
	// URL names the server: redis://[user[:password]@]host[:port][/db], or rediss:// for TLS. Parameters: prefix (of all keys,
	// default PrefixDefault), lua (1, the default: scripts run in Redis; 0: in the hosts, see ModeNoLua), and those of go-redis
	// (dial_timeout, read_timeout, write_timeout, pool_size, …).
	//
	// A master that Sentinels know: redis+sentinel://[user[:password]@]host[:port][,host[:port]…]/master[/db], or rediss+sentinel:// for
	// TLS to the Sentinels and the server both. User and password are those of the server; the parameters sentinel_username and
	// sentinel_password are for the Sentinels. The default port is 26379, the default db 0.
	URL string
	// Username and Password win over those of the URL, so that a secret need not be in it.
	Username, Password string
	// SentinelUsername and SentinelPassword win over the parameters of the URL.
	SentinelUsername, SentinelPassword string
	// TLS is used with rediss:// and rediss+sentinel://; default: the system's roots and the host that is connected to.
	TLS *tls.Config

	Limits queue.Limits // zero = queue.DefaultLimits()
	Logger *slog.Logger // default: discarded

	// AllowEviction opens a store on a Redis that may evict keys (maxmemory-policy other than noeviction), which loses jobs.
	// Without it Open refuses.
	AllowEviction bool

	// Clock replaces the time of Redis. It is for tests: the hosts of a store would have to share it. Default nil: Redis TIME.
	Clock queue.Clock
}

// prefixMax bounds the prefix in bytes.
const prefixMax = 64

// target is what options say: where to connect to, and how.
type target struct {
	client   *redis.Options
	failover *redis.FailoverOptions // nil = client names the server itself
	prefix   string
	noLua    bool
}

// connect makes the client.
func (t *target) connect() *redis.Client {
	if t.failover == nil {
		return redis.NewClient(t.client)
	}
	return redis.NewFailoverClient(t.failover)
}

// name is the address for people.
func (t *target) name() string {
	if t.failover == nil {
		return t.client.Addr
	}
	return t.failover.MasterName + " of " + strings.Join(t.failover.SentinelAddrs, ",")
}

// parse reads the options and fills in the defaults. Its errors never show a password.
func (o *Options) parse() (*target, error) {
	invalid := func(reason string) error { return &queue.InvalidError{Field: "redis url", Reason: reason} }
	text, master, err := splitSentinel(o.URL)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, invalid("must be redis://[user[:password]@]host[:port][/db][?prefix=…]; it cannot be read as a URL")
	}
	if u.Scheme != "redis" && u.Scheme != "rediss" {
		return nil, invalid(fmt.Sprintf("must begin with redis://, rediss://, redis+sentinel:// or rediss+sentinel://, got %q", u.Scheme+"://"))
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, invalid("its parameters (behind ?) cannot be read")
	}
	t := &target{prefix: PrefixDefault}
	if q.Has("cluster") && q.Get("cluster") != "0" {
		return nil, invalid("Redis Cluster is not supported yet: remove cluster=" + q.Get("cluster"))
	}
	switch lua := q.Get("lua"); {
	case q.Has("lua") && lua != "0" && lua != "1":
		return nil, invalid(fmt.Sprintf("lua must be 1 (scripts run in Redis, the default) or 0 (in the hosts), got %q", lua))
	case lua == "0":
		t.noLua = true
	}
	if q.Has("prefix") {
		t.prefix = q.Get("prefix")
	}
	if err := validPrefix(t.prefix); err != nil {
		return nil, err
	}
	for _, name := range []string{"cluster", "lua", "prefix"} {
		q.Del(name)
	}
	if master != nil {
		master.user, master.password = cmp.Or(o.SentinelUsername, q.Get("sentinel_username")), cmp.Or(o.SentinelPassword, q.Get("sentinel_password"))
		q.Del("sentinel_username")
		q.Del("sentinel_password")
	}
	u.RawQuery = q.Encode()
	c, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, invalid(strings.ReplaceAll(err.Error(), u.String(), u.Redacted()))
	}
	c.Username, c.Password = cmp.Or(o.Username, c.Username), cmp.Or(o.Password, c.Password)
	if master != nil && c.TLSConfig != nil {
		c.TLSConfig.ServerName = "" // that of the server a connection goes to
	}
	if o.TLS != nil && c.TLSConfig != nil {
		own := o.TLS.Clone()
		own.ServerName = cmp.Or(own.ServerName, c.TLSConfig.ServerName)
		c.TLSConfig = own
	}
	c.MaxRetries = -1 // scripts are sent again by run, which knows what that may change
	if c.DialTimeout == 0 {
		c.DialTimeout = 2 * time.Second
	}
	c.DialerRetries = 1
	c.ContextTimeoutEnabled = true
	c.Protocol = 2
	c.DisableIdentity = true
	t.client = c
	if master != nil {
		t.failover = master.options(c)
	}
	if o.Limits == (queue.Limits{}) {
		o.Limits = queue.DefaultLimits()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return t, nil
}

// validPrefix refuses an empty prefix, under which a flush would take everything, and characters that mean something to Redis.
func validPrefix(p string) error {
	if p == "" || len(p) > prefixMax {
		return &queue.InvalidError{Field: "prefix", Reason: fmt.Sprintf("must be 1 to %d bytes, got %d", prefixMax, len(p))}
	}
	if i := strings.IndexAny(p, "*?[]{}\\^ \t\r\n\x00"); i >= 0 {
		return &queue.InvalidError{Field: "prefix", Reason: fmt.Sprintf("%q has a character at byte %d that is not allowed: * ? [ ] { } \\ ^ or white space", p, i)}
	}
	return nil
}
