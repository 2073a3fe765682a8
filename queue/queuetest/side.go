package queuetest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/taskhost/taskhost/queue"
)

// side is one of the two stores of a history, seen through numbers: job #3 is the third one created, token 2 that of the
// second batch that was not empty. So the answers of both sides can be compared as text.
type side struct {
	*fixture
	ids     []string
	numbers map[string]int
	tokens  []queue.Token
	taken   []int // numbers of the last reserved batch
}

func newSide(t *testing.T, q queue.Queue) *side {
	t.Helper()
	f := &fixture{T: t, ctx: context.Background()}
	f.use(q)
	return &side{fixture: f, numbers: map[string]int{}}
}

func (s *side) close() {
	if err := s.Queue.Close(); err != nil {
		s.Errorf("Close: %v", err)
	}
}

// unknownID is well formed and belongs to no job.
const unknownID = "job_01kb0000000000000000000000"

func (s *side) id(number int) string {
	if number < 0 || number >= len(s.ids) {
		return unknownID
	}
	return s.ids[number]
}

func (s *side) token(number int) queue.Token {
	if number < 0 || number >= len(s.tokens) {
		return ""
	}
	return s.tokens[number]
}

func (s *side) born(id string) {
	s.numbers[id] = len(s.ids)
	s.ids = append(s.ids, id)
}

func (s *side) number(id string) string {
	if id == "" {
		return "none"
	}
	if n, ok := s.numbers[id]; ok {
		return fmt.Sprintf("#%d", n)
	}
	return "#?"
}

func (s *side) describe(j *queue.Job) string {
	if j == nil {
		return "no job"
	}
	c := *j
	c.ID = s.number(j.ID)
	return describe(&c)
}

var idPattern = regexp.MustCompile(`job_[0-9a-z]{26}`)

// outcome writes an error by what a caller can tell of it.
func (s *side) outcome(err error) string {
	if err == nil {
		return "ok"
	}
	kind := ""
	for _, sentinel := range []error{queue.ErrNotFound, queue.ErrConflict, queue.ErrLeaseLost, queue.ErrUnavailable, queue.ErrClosed, queue.ErrInvalid} {
		if errors.Is(err, sentinel) {
			kind += "<" + sentinel.Error() + ">"
		}
	}
	text := ""
	var (
		invalid  *queue.InvalidError
		limit    *queue.LimitError
		held     *queue.UniqueHeldError
		mismatch *queue.IdempotencyMismatchError
		state    *queue.StateError
	)
	switch {
	case errors.As(err, &invalid), errors.As(err, &limit), errors.As(err, &held), errors.As(err, &mismatch), errors.As(err, &state):
		text = idPattern.ReplaceAllStringFunc(err.Error(), s.number)
	}
	if kind == "" {
		kind = err.Error()
	}
	if mismatch != nil {
		kind += "mismatch "
	}
	return strings.TrimSpace(kind + " " + text)
}
