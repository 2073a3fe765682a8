package redisq

import (
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
	// default PrefixDefault), and those of go-redis (dial_timeout, read_timeout, write_timeout, pool_size, …).
	URL string
	// Username and Password win over those of the URL, so that a secret need not be in it.
	Username, Password string
	// TLS is used with rediss://; default: the system's roots and the host of the URL.
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

// parse turns the options into those of the client, and the prefix. Its errors never show a password.
func (o *Options) parse() (*redis.Options, string, error) {
	invalid := func(reason string) error { return &queue.InvalidError{Field: "redis url", Reason: reason} }
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, "", invalid("must be redis://[user[:password]@]host[:port][/db][?prefix=…]; it cannot be read as a URL")
	}
	switch u.Scheme {
	case "redis", "rediss":
	case "redis+sentinel", "rediss+sentinel":
		return nil, "", invalid("Sentinel is not supported yet; name the server itself")
	default:
		return nil, "", invalid(fmt.Sprintf("must begin with redis:// or rediss://, got %q", u.Scheme+"://"))
	}
	q := u.Query()
	for name, what := range map[string]string{"cluster": "Redis Cluster is not supported yet", "lua": "a mode without Lua is not supported yet"} {
		if v := q.Get(name); q.Has(name) && (name == "lua") == (v == "0") {
			return nil, "", invalid(what + ": remove " + name + "=" + v)
		}
		q.Del(name)
	}
	prefix := PrefixDefault
	if q.Has("prefix") {
		prefix = q.Get("prefix")
		q.Del("prefix")
	}
	if err := validPrefix(prefix); err != nil {
		return nil, "", err
	}
	u.RawQuery = q.Encode()
	c, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, "", invalid(strings.ReplaceAll(err.Error(), u.String(), u.Redacted()))
	}
	if o.Username != "" {
		c.Username = o.Username
	}
	if o.Password != "" {
		c.Password = o.Password
	}
	if o.TLS != nil && c.TLSConfig != nil {
		t := o.TLS.Clone()
		if t.ServerName == "" {
			t.ServerName = c.TLSConfig.ServerName
		}
		c.TLSConfig = t
	}
	c.MaxRetries = -1 // scripts are sent again by run, which knows what that may change
	if c.DialTimeout == 0 {
		c.DialTimeout = 2 * time.Second
	}
	c.DialerRetries = 1
	c.ContextTimeoutEnabled = true
	c.Protocol = 2
	c.DisableIdentity = true
	if o.Limits == (queue.Limits{}) {
		o.Limits = queue.DefaultLimits()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return c, prefix, nil
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
