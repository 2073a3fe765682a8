package redisq

import (
	"context"
	"fmt"

	"github.com/taskhost/taskhost/queue"
)

// reserveMax is the most jobs of one script call; a Reserve that asks for more gets this many.
const reserveMax = 1000

// Reserve implements queue.Queue.
func (s *Store) Reserve(ctx context.Context, p queue.ReserveParams) ([]*queue.Job, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	token, err := newToken()
	if err != nil {
		return nil, err
	}
	v, err := s.run(ctx, "reserve", string(token), p.Worker, viewName(p.View), min(p.Max, reserveMax), p.MaxBytes, ceilMillis(p.Lease), queue.AsideMax)
	if err != nil {
		return nil, err
	}
	list, err := asList(v)
	if err != nil || len(list) < 2 || len(list)%2 != 0 {
		return nil, fmt.Errorf("%w: redis answered a reservation with %d values", queue.ErrUnavailable, len(list))
	}
	if len(list) == 2 { // no job
		return nil, nil
	}
	at, until := millis(asInt(list[0])), millis(asInt(list[1]))
	jobs := make([]*queue.Job, 0, (len(list)-2)/2)
	var large []*queue.Job
	for k := 2; k < len(list); k += 2 {
		id := asString(list[k])
		j, head, err := decodeRecord(id, asString(list[k+1]))
		if err != nil {
			s.setAside(ctx, id, token, err)
			continue
		}
		j.Token = token
		start(j, at, until, p.Worker)
		if head.int("B") == 1 || head.int("ck") > 0 {
			large = append(large, j)
		}
		jobs = append(jobs, j)
	}
	if len(large) > 0 {
		if err := s.fetchLarge(ctx, large); err != nil {
			s.giveBack(ctx, jobs)
			return nil, err
		}
	}
	return jobs, nil
}

// fetchLarge reads the payloads and checkpoints that are not in the records, in one round trip.
func (s *Store) fetchLarge(ctx context.Context, jobs []*queue.Job) error {
	keys := make([]string, 0, 2*len(jobs))
	for _, j := range jobs {
		id, _ := short(j.ID)
		keys = append(keys, s.prefix+"body:"+id, s.prefix+"check:"+id)
	}
	var values []any
	var err error
	for range tries {
		if values, err = s.client.MGet(ctx, keys...).Result(); err == nil || !lostReply(err) {
			break
		}
	}
	if err != nil {
		return s.failure(ctx, "mget", err)
	}
	for i, j := range jobs {
		if body, ok := values[2*i].(string); ok {
			j.Payload = []byte(body)
		}
		if check, ok := values[2*i+1].(string); ok {
			j.Checkpoint = []byte(check)
		}
	}
	return nil
}

// giveBack releases jobs that could not be handed out; what fails here is reaped.
func (s *Store) giveBack(ctx context.Context, jobs []*queue.Job) {
	list := make([]queue.Settlement, len(jobs))
	for i, j := range jobs {
		list[i] = queue.Settlement{Ref: queue.Ref{ID: j.ID, Token: j.Token}, Verb: queue.VerbRelease}
	}
	if _, err := s.Settle(context.WithoutCancel(ctx), list); err != nil {
		s.o.Logger.Warn("jobs whose payloads could not be read stay reserved until their lease ends", "jobs", len(jobs), "error", err)
	}
}

// setAside moves a job whose record cannot be read to the dead letters, once, so that it hurts nobody else.
func (s *Store) setAside(ctx context.Context, id string, token queue.Token, why error) {
	s.o.Logger.Error("a job's record cannot be read; it goes to the dead letters", "id", id, "error", why)
	_, err := s.Settle(context.WithoutCancel(ctx), []queue.Settlement{{
		Ref:   queue.Ref{ID: queue.JobIDPrefix + "_" + id, Token: token},
		Verb:  queue.VerbDead,
		Error: &queue.JobError{Kind: "undecodable", Message: why.Error()},
	}})
	if err != nil {
		s.o.Logger.Error("a damaged job could not be set aside", "id", id, "error", err)
	}
}

// viewName is a view as scripts know it: '*', or its names between commas.
func viewName(v queue.View) string {
	if len(v.Queues) == 0 {
		return "*"
	}
	return "," + v.Key() + ","
}
