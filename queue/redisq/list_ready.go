package redisq

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/taskhost/taskhost/queue"
)

// readyPlace is a cursor among the ready jobs of a tenant that has many: how many entries of which line were passed, counted
// from its tail, which jobs that start or are taken away at its front do not shift; and below which ids, so that jobs created
// later do not come up again.
type readyPlace struct {
	below string
	line  string // "<queue>:<band>"; empty = before the first one
	pos   int64
}

const placePrefix = "ready:"

func (p readyPlace) String() string {
	return placePrefix + p.below + ":" + p.line + ":" + strconv.FormatInt(p.pos, 10)
}

func parsePlace(cursor string) (*readyPlace, bool) {
	text, ok := strings.CutPrefix(cursor, placePrefix)
	if !ok {
		return nil, false
	}
	below, rest, ok := strings.Cut(text, ":")
	end := strings.LastIndexByte(rest, ':')
	if !ok || end < 0 || len(below) != len("0123456789") {
		return nil, false
	}
	pos, err := strconv.ParseInt(rest[end+1:], 10, 64)
	if err != nil || pos < 0 {
		return nil, false
	}
	return &readyPlace{below: below, line: rest[:end], pos: pos}, true
}

// findLines reads the names of the lines that hold ready jobs of the tenant, in bounded steps.
func (l *lister) findLines(ctx context.Context) error {
	set := map[string]bool{}
	for cursor := uint64(0); ; {
		names, next, err := l.s.client.SScan(ctx, l.s.prefix+keyLines+l.f.Tenant, cursor, "", 1000).Result()
		if err != nil {
			return l.s.failure(ctx, "sscan", err)
		}
		for _, name := range names {
			if q, _ := bandOf(name); l.f.Queue == "" || q == l.f.Queue {
				set[name] = true
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	queues, err := l.s.client.SMembers(ctx, l.s.prefix+keyAsides+l.f.Tenant).Result()
	if err != nil {
		return l.s.failure(ctx, "smembers", err)
	}
	for _, q := range queues {
		if l.f.Queue == "" || q == l.f.Queue {
			set[q+":"+bandAside] = true
		}
	}
	for name := range set {
		l.lines = append(l.lines, name)
	}
	slices.Sort(l.lines)
	return nil
}

// bandAside stands for a band in the name of what is no line, but the ZSET of the jobs of a queue that stepped aside.
const bandAside = "aside"

func isAside(line string) bool {
	_, band := bandOf(line)
	return band == bandAside
}

func (l *lister) lineKey(line string) string {
	q, band := bandOf(line)
	if l.f.Tenant != "default" {
		q = l.f.Tenant + "/" + q
	}
	if band == bandAside {
		return l.s.prefix + keyAside + q
	}
	return l.s.prefix + keyReady + q + ":" + band
}

// lineRange asks for entries of a line, as LRANGE counts them.
func (l *lister) lineRange(ctx context.Context, c redis.Cmdable, line string, from, to int64) *redis.StringSliceCmd {
	if isAside(line) {
		return c.ZRange(ctx, l.lineKey(line), from, to)
	}
	return c.LRange(ctx, l.lineKey(line), from, to)
}

// readyIDs returns the ids of the ready jobs, in no order; none, and l.sections, when they are too many.
func (l *lister) readyIDs(ctx context.Context) ([]string, error) {
	if l.sections = len(l.lines) > listReady; l.sections {
		return nil, nil
	}
	const lines = 1000 // in one round trip
	var total int64
	for names := range slices.Chunk(l.lines, lines) {
		cmds, err := l.s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, name := range names {
				if isAside(name) {
					p.ZCard(ctx, l.lineKey(name))
				} else {
					p.LLen(ctx, l.lineKey(name))
				}
			}
			return nil
		})
		if err != nil {
			return nil, l.s.failure(ctx, "llen", err)
		}
		for _, c := range cmds {
			total += c.(*redis.IntCmd).Val()
		}
		if l.sections = total > int64(l.s.listReady); l.sections {
			return nil, nil
		}
	}
	var ids []string
	for names := range slices.Chunk(l.lines, lines) {
		cmds, err := l.s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, name := range names {
				l.lineRange(ctx, p, name, -2*listReady, -1)
			}
			return nil
		})
		if err != nil {
			return nil, l.s.failure(ctx, "lrange", err)
		}
		for _, c := range cmds {
			for _, e := range c.(*redis.StringSliceCmd).Val() {
				ids = append(ids, e[:min(len(e), queue.IDLen)])
			}
		}
	}
	return ids, nil
}

// ready lists the lines one after the other, from where the cursor is.
func (l *lister) ready(ctx context.Context) error {
	first, _ := slices.BinarySearch(l.lines, l.at.line)
	for _, line := range l.lines[first:] {
		if line != l.at.line {
			l.at.line, l.at.pos = line, 0
		}
		over, err := l.oneLine(ctx)
		if err != nil || over {
			return err
		}
	}
	return nil
}

// oneLine lists the rest of the line of the cursor; over says that the page ends within it.
func (l *lister) oneLine(ctx context.Context) (over bool, err error) {
	for {
		n := int64(min(fetchMost, l.left))
		entries, err := l.lineRange(ctx, l.s.client, l.at.line, -l.at.pos-n, -l.at.pos-1).Result()
		if err != nil {
			return false, l.s.failure(ctx, "lrange", err)
		}
		slices.Reverse(entries)
		ids := make([]string, len(entries))
		for i, e := range entries {
			ids[i] = e[:min(len(e), queue.IDLen)]
		}
		jobs, err := l.s.fetch(ctx, false, ids...)
		if err != nil {
			return false, err
		}
		for i, j := range jobs {
			if j == nil || j.State != queue.StateReady || ids[i] >= l.at.below || !l.f.Matches(j) {
				l.at.pos++
				continue
			}
			if len(l.page.Jobs) == l.limit {
				l.page.Next = l.at.String()
				return true, nil
			}
			l.add(j)
			l.at.pos++
		}
		if int64(len(entries)) < n {
			return false, nil
		}
		if l.left -= len(entries); l.left <= 0 {
			l.page.Next = l.at.String()
			return true, nil
		}
	}
}
