package redisq

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name Redis gives a script, not a protection
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
	"github.com/taskhost/taskhost/queue/redisq/luaexec"
)

//go:embed lua/*.lua lua/lib/*.lua
var luaFiles embed.FS

// script is one file of lua/ with its libraries, and the name Redis knows it by.
type script struct {
	text, sha string
	program   func() (*luaexec.Program, error) // compiled at its first use
}

// loadScripts puts every script together: its first line, lib/base.lua, and the rest with the libraries that --@include lines name in
// their places. Libraries have such lines for what they need themselves; each comes once. An --@include inside a function costs nothing
// until the function is called: to make the functions of all libraries takes longer than a script's usual work.
func loadScripts() (map[string]*script, error) {
	names, err := luaFiles.ReadDir("lua")
	if err != nil {
		return nil, err
	}
	scripts := make(map[string]*script)
	for _, e := range names {
		if e.IsDir() {
			continue
		}
		text, err := luaFiles.ReadFile(path.Join("lua", e.Name()))
		if err != nil {
			return nil, err
		}
		full, err := withLibraries(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		sum := sha1.Sum([]byte(full)) //nolint:gosec // see above
		name := strings.TrimSuffix(e.Name(), ".lua")
		scripts[name] = &script{text: full, sha: hex.EncodeToString(sum[:]),
			program: sync.OnceValues(func() (*luaexec.Program, error) { return luaexec.Compile(name, full) })}
	}
	return scripts, nil
}

func withLibraries(text string) (string, error) {
	shebang, body, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(shebang, "#!lua") || !strings.Contains(body, "--@include") {
		return "", errors.New("must begin with #!lua and have an --@include line")
	}
	var b strings.Builder
	b.WriteString(shebang + "\n")
	if err := include(&b, "--@include base\n"+body, make(map[string]bool)); err != nil {
		return "", err
	}
	return stripComments(b.String()), nil
}

// include writes a text with the libraries it names; those in seen are there already.
func include(b *strings.Builder, text string, seen map[string]bool) error {
	for {
		head, rest, ok := strings.Cut(text, "--@include")
		b.WriteString(head)
		if !ok {
			return nil
		}
		var names string
		names, text, _ = strings.Cut(rest, "\n")
		for _, lib := range strings.Fields(names) {
			if seen[lib] {
				continue
			}
			seen[lib] = true
			t, err := luaFiles.ReadFile("lua/lib/" + lib + ".lua")
			if err != nil {
				return err
			}
			if err := include(b, string(t), seen); err != nil {
				return err
			}
			b.WriteString("\n")
		}
	}
}

// stripComments drops whole-line comments and indentation: Redis keeps and hashes the text.
func stripComments(text string) string {
	lines := strings.Split(text, "\n")
	kept := lines[:0]
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "--") {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n") + "\n"
}

// How often and how long after one another a call is sent again when no reply came.
const (
	tries      = 4
	triesTime  = 3 * time.Second // none begins later than this after the first
	firstPause = 5 * time.Millisecond
)

// run sends a script and returns its answer. A call whose reply was lost is sent again: scripts either change nothing the second
// time, or carry a lane (lane.go).
func (s *Store) run(ctx context.Context, name string, args ...any) (any, error) {
	pause, begun := firstPause, time.Now()
	for try := 1; ; try++ {
		v, err := s.once(ctx, name, args...)
		if err == nil || errors.Is(err, redis.Nil) {
			s.outage.over()
			return v, nil
		}
		if !lostReply(err) || try == tries || time.Since(begun) > triesTime || ctx.Err() != nil || s.life.Err() != nil {
			return nil, s.failure(ctx, name, err)
		}
		s.outage.note()
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-s.life.Done():
		}
		timer.Stop()
		pause *= 5
	}
}

// once sends a script once, or runs it here when Redis may not (nolua.go).
func (s *Store) once(ctx context.Context, name string, args ...any) (any, error) {
	if s.exec != nil {
		return s.runHere(ctx, name, args)
	}
	sc := s.scripts[name]
	all := make([]any, 0, len(args)+5)
	all = append(all, "evalsha", sc.sha, 1, s.prefix, s.clockArg())
	all = append(all, args...)
	v, err := s.client.Do(ctx, all...).Result()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		all[0], all[1] = "eval", sc.text
		v, err = s.client.Do(ctx, all...).Result()
	}
	return v, err
}

// viewsMax is how many different views a store keeps (viewmost in lua/lib/lines.lua); one that nobody waited on for an hour is
// forgotten.
const viewsMax = 64

// lostReply says whether the connection failed, so that nobody knows whether the call took effect.
func lostReply(err error) bool {
	var n net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &n) || errors.Is(err, net.ErrClosed)
}

// failure is the error of a call that got no answer it can use.
func (s *Store) failure(ctx context.Context, name string, err error) error {
	switch {
	case s.life.Err() != nil:
		return queue.ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case redis.HasErrorPrefix(err, "OOM"):
		return fmt.Errorf("%w: redis is full (maxmemory): %s was refused and changed nothing: %w", queue.ErrUnavailable, name, err)
	}
	if wrong := s.wrongMode(err); wrong != nil {
		return wrong
	}
	if redis.HasErrorPrefix(err, "VIEWS") {
		return &queue.LimitError{Field: "view", Limit: "views", Max: viewsMax, Got: viewsMax + 1, Unit: "different sets of queues"}
	}
	if lostReply(err) {
		s.outage.note()
	}
	return fmt.Errorf("%w: redis: %s: %w", queue.ErrUnavailable, name, err)
}

// clockArg is the first argument of every script: empty for Redis TIME.
func (s *Store) clockArg() any {
	if s.clock == nil {
		return ""
	}
	return s.clock.Now().UnixMilli()
}

// Answers of scripts. A wrong type is a script that does not fit this code.

func asList(v any) ([]any, error) {
	if l, ok := v.([]any); ok {
		return l, nil
	}
	return nil, fmt.Errorf("%w: redis answered %T instead of a list", queue.ErrUnavailable, v)
}

func asString(v any) string {
	s, _ := v.(string)
	return s
}

func asInt(v any) int64 {
	n, _ := v.(int64)
	return n
}
