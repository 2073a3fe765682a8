package config

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scalar checks one value and returns it as the type of its field. The error says what is allowed and what was given.
type scalar func(n *node) (any, error)

func wrongType(want string, n *node) error {
	hint := ""
	if s, ok := n.value.(string); ok && !n.text {
		if _, err := strconv.ParseFloat(s, 64); err == nil {
			hint = ", written without quotes"
		}
	}
	return fmt.Errorf("must be %s%s; got %s", want, hint, n.kindName())
}

func text(n *node) (any, error) {
	s, ok := n.value.(string)
	if !ok {
		return nil, wrongType("text (in quotes if it looks like something else)", n)
	}
	if strings.ContainsRune(s, 0) {
		return nil, fmt.Errorf("must not contain a zero byte")
	}
	return s, nil
}

func boolean(n *node) (any, error) {
	if b, ok := n.value.(bool); ok {
		return b, nil
	}
	if s, ok := n.value.(string); ok && n.text {
		switch s {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return nil, wrongType("true or false", n)
}

// integer takes whole numbers in [lo, hi].
func integer(lo, hi int64) scalar {
	return func(n *node) (any, error) {
		want := fmt.Sprintf("a whole number between %d and %d", lo, hi)
		var i int64
		switch v := n.value.(type) {
		case int64:
			i = v
		case uint64:
			return nil, fmt.Errorf("must be %s, got %d", want, v)
		case float64:
			return nil, fmt.Errorf("must be %s, got %v", want, v)
		case string:
			if !n.text {
				return nil, wrongType(want, n)
			}
			var err error
			if i, err = strconv.ParseInt(v, 10, 64); err != nil {
				return nil, fmt.Errorf("must be %s, got %q", want, clip(v))
			}
		default:
			return nil, wrongType(want, n)
		}
		if i < lo || i > hi {
			return nil, fmt.Errorf("must be %s, got %d", want, i)
		}
		return int(i), nil
	}
}

// count takes whole numbers in [1, hi] and "auto".
func count(hi int64) scalar {
	whole := integer(1, hi)
	return func(n *node) (any, error) {
		if s, ok := n.value.(string); ok && s == "auto" {
			return Auto, nil
		}
		v, err := whole(n)
		if err != nil {
			return nil, fmt.Errorf("%w (or auto)", err)
		}
		i, _ := v.(int) // integer returns nothing else
		return Count(i), nil
	}
}

// number takes finite numbers in [lo, hi], lo > 0.
func number(lo, hi float64) scalar {
	return func(n *node) (any, error) {
		var f float64
		switch v := n.value.(type) {
		case int64:
			f = float64(v)
		case uint64:
			f = float64(v)
		case float64:
			f = v
		case string:
			if !n.text {
				return nil, wrongType("a number", n)
			}
			var err error
			if f, err = strconv.ParseFloat(v, 64); err != nil {
				return nil, fmt.Errorf("must be a number, got %q", clip(v))
			}
		default:
			return nil, wrongType("a number", n)
		}
		switch {
		case f <= 0:
			return nil, fmt.Errorf("must be > 0, got %v (allowed: %v to %v)", f, lo, hi)
		case math.IsNaN(f) || f < lo || f > hi:
			return nil, fmt.Errorf("must be between %v and %v, got %v", lo, hi, f)
		}
		return f, nil
	}
}

func duration(lo, hi time.Duration) scalar {
	return func(n *node) (any, error) {
		s, ok := n.value.(string)
		if !ok {
			return nil, fmt.Errorf(`must be a duration with a unit such as "90s", got %s`, n.kindName())
		}
		d, err := ParseDuration(s)
		if err != nil {
			return nil, err
		}
		if d < lo || d > hi {
			return nil, fmt.Errorf("must be between %s and %s, got %s", FormatDuration(lo), FormatDuration(hi), s)
		}
		return d, nil
	}
}

// rate takes jobs per time.
func rate(n *node) (any, error) {
	s, ok := n.value.(string)
	if !ok {
		return nil, fmt.Errorf(`must be jobs per time such as "100/s" or "5/m", got %s`, n.kindName())
	}
	return ParseRate(s)
}

// durationOr takes a word for one special value.
func durationOr(word string, special, lo, hi time.Duration) scalar {
	plain := duration(lo, hi)
	return func(n *node) (any, error) {
		if s, ok := n.value.(string); ok && s == word {
			return special, nil
		}
		v, err := plain(n)
		if err != nil {
			return nil, fmt.Errorf("%w (or %s)", err, word)
		}
		return v, nil
	}
}

// sizeOrAuto takes a size, or auto as 0.
func sizeOrAuto(lo, hi Size) scalar {
	plain := size(lo, hi)
	return func(n *node) (any, error) {
		if s, ok := n.value.(string); ok && s == "auto" {
			return Size(0), nil
		}
		v, err := plain(n)
		if err != nil {
			return nil, fmt.Errorf("%w (or auto)", err)
		}
		return v, nil
	}
}

// wholeMillis refuses durations with parts of a millisecond.
func wholeMillis(plain scalar) scalar {
	return func(n *node) (any, error) {
		v, err := plain(n)
		if d, ok := v.(time.Duration); ok && d%time.Millisecond != 0 {
			return nil, fmt.Errorf("must be whole milliseconds, got %s", n.value)
		}
		return v, err
	}
}

func size(lo, hi Size) scalar {
	return func(n *node) (any, error) {
		s, ok := n.value.(string)
		if !ok {
			return nil, fmt.Errorf(`must be a size with a unit such as "64MiB", got %s`, n.kindName())
		}
		v, err := ParseSize(s)
		if err != nil {
			return nil, err
		}
		if v < lo || v > hi {
			return nil, fmt.Errorf("must be between %s and %s, got %s", lo, hi, s)
		}
		return v, nil
	}
}

// oneOf takes the words of allowed; those of later get a clearer refusal.
func oneOf(allowed []string, later ...string) scalar {
	return func(n *node) (any, error) {
		s, ok := n.value.(string)
		if ok && slices.Contains(allowed, s) {
			return s, nil
		}
		if ok && slices.Contains(later, s) {
			return nil, fmt.Errorf("%q is not in this version; allowed: %s", s, strings.Join(allowed, ", "))
		}
		if len(allowed) == 1 {
			return nil, fmt.Errorf("must be %s, got %s", allowed[0], n.kindName())
		}
		return nil, fmt.Errorf("must be one of %s; got %s", strings.Join(allowed, ", "), n.kindName())
	}
}

func storeName(n *node) (any, error) {
	s, ok := n.value.(string)
	if ok && (s == StoreSQLite || IsRedis(s)) {
		return s, nil
	}
	got := n.kindName()
	if ok {
		got = strconv.Quote(RedactURL(s))
	}
	return nil, fmt.Errorf("must be sqlite (a file in data_dir) or redis://[user:password@]host:port/db[?prefix=…] (rediss:// for TLS, redis+sentinel://host:port,host:port/master/db for Sentinels); got %s", got)
}

func address(n *node) (any, error) {
	s, ok := n.value.(string)
	if !ok {
		return nil, wrongType(`text such as "127.0.0.1:7070"`, n)
	}
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return nil, fmt.Errorf(`must be host:port such as "127.0.0.1:7070" (port 0–65535, 0 = a free one), got %q`, clip(s))
	}
	return s, nil
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`) //nolint:gochecknoglobals // compiled once, never written

// validName checks a queue or tenant name; the words are the same as in the API.
func validName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name must not be empty")
	case len(name) > 128:
		return fmt.Errorf("the name must be at most 128 bytes, got %d", len(name))
	case !nameRule.MatchString(name):
		return fmt.Errorf("the name %q has a character that is not allowed; use A-Z a-z 0-9 . _ - and begin with a letter or digit", clip(name))
	}
	return nil
}

func queueOrAll(n *node) (any, error) {
	s, ok := n.value.(string)
	if !ok {
		return nil, wrongType(`the name of a queue or "*"`, n)
	}
	if s == "*" {
		return s, nil
	}
	return s, validName(s)
}

func handlerType(n *node) (any, error) {
	s, ok := n.value.(string)
	if !ok {
		return nil, wrongType("the name of a type", n)
	}
	if prefix, pattern := strings.CutSuffix(s, "*"); pattern && prefix == "" {
		return s, nil
	} else if pattern {
		return s, validName(prefix)
	}
	return s, validName(s)
}

// configName checks the name of a handler's configuration value. It becomes an environment variable of commands.
func configName(name string) error {
	if name == "" || len(name) > 128 || strings.ContainsAny(name, "=\x00\n") || strings.HasPrefix(name, "TASKHOST_") {
		return fmt.Errorf("the name %q is not allowed; use 1–128 bytes without = and line breaks, not beginning with TASKHOST_", clip(name))
	}
	return nil
}

var sha256Rule = regexp.MustCompile(`^[0-9a-fA-F]{64}$`) //nolint:gochecknoglobals // compiled once, never written

func sha256Text(n *node) (any, error) {
	s, ok := n.value.(string)
	if !ok || !sha256Rule.MatchString(s) {
		return nil, wrongType("a SHA-256 of 64 hexadecimal digits", n)
	}
	return strings.ToLower(s), nil
}

// fileName checks a path that is a key.
func fileName(name string) error {
	if name == "" || strings.ContainsAny(name, "\x00\n") {
		return fmt.Errorf("the path %q is not allowed: it must not be empty and have no line break", clip(name))
	}
	return nil
}

// RedactURL hides the password of a URL and the values of its query that look secret. Text that is not a URL is returned unchanged,
// unless it has an @, before which everything is hidden.
func RedactURL(s string) string {
	u, err := url.Parse(s)
	if before, hosts, after, ok := hostList(s); ok {
		return strings.Replace(RedactURL(before+placeholder+after), placeholder, hosts, 1)
	}
	if err != nil || u.Scheme == "" {
		if _, host, ok := strings.Cut(s, "@"); ok {
			host, _, _ = strings.Cut(host, "?")
			return "***@" + host
		}
		return s
	}
	if u.User != nil {
		name := u.User.Username()
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(name, "***")
		}
	}
	query := u.Query()
	for k := range query {
		if looksSecret(k) {
			query.Set(k, "***")
			u.RawQuery = query.Encode()
		}
	}
	out := u.String()
	return strings.ReplaceAll(out, "%2A%2A%2A", "***")
}

// placeholder stands for a list of hosts, which net/url does not read.
const placeholder = "hosts.invalid"

// hostList finds the hosts of a URL that names several, as Sentinel URLs do.
func hostList(s string) (before, hosts, after string, ok bool) {
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || strings.Contains(s, placeholder) {
		return "", "", "", false
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	at := strings.LastIndexByte(rest[:end], '@') + 1
	return scheme + "://" + rest[:at], rest[at:end], rest[end:], strings.Contains(rest[at:end], ",")
}

func looksSecret(name string) bool {
	n := strings.ToLower(name)
	for _, word := range [...]string{"secret", "token", "password", "passwd", "credential", "key", "auth", "dsn"} {
		if strings.Contains(n, word) {
			return true
		}
	}
	return false
}
