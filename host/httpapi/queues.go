package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/queue"
)

// Queue is a queue in an answer: the settings in force, where they come from, and what it holds.
type Queue struct {
	Name      string         `json:"name"`
	Weight    float64        `json:"weight"`
	Priority  int            `json:"priority" doc:"default priority of its jobs"`
	Paused    bool           `json:"paused" doc:"jobs are accepted, none is started"`
	MaxRun    *int           `json:"max_running" doc:"jobs that run at once, on all hosts together; null = no cap"`
	MaxPerKey int            `json:"max_per_key" doc:"jobs with the same concurrency_key that run at once"`
	Rate      Text           `json:"rate" example:"100/s" doc:"jobs started per time; null = no bound"`
	Waiting   Text           `json:"waiting" doc:"what holds the whole queue back now: paused, max_running, tenant_max_running or rate"`
	Override  QueueOverrides `json:"override" doc:"what was set here instead of the configured values"`
	Scheduled int64          `json:"scheduled"`
	Ready     int64          `json:"ready"`
	Running   int64          `json:"running"`
	Dead      int64          `json:"dead"`
	Served    int64          `json:"served" doc:"attempts started, ever"`
	OldestMS  *int64         `json:"oldest_ready_age_ms" doc:"age of the oldest ready job"`
}

// QueueOverrides are the settings that PATCH made; null is the configured value.
type QueueOverrides struct {
	Weight   *float64 `json:"weight"`
	Priority *int     `json:"priority"`
	Paused   *bool    `json:"paused"`
	MaxRun   *int     `json:"max_running" minimum:"1" maximum:"1000000"`
	PerKey   *int     `json:"max_per_key" minimum:"1" maximum:"1000000"`
	Rate     *string  `json:"rate" example:"5/m" doc:"jobs per s, m, h or d, or with a number before the unit: 3/90s"`
}

// QueueList lists queues by name.
type QueueList struct {
	Queues     []Queue `json:"queues"`
	NextCursor Text    `json:"next_cursor" doc:"always null: the list is whole"`
}

type queuePath struct {
	call
	Name string `path:"queue" doc:"name of the queue" example:"default"`
}

type queueAnswer struct{ Body Queue }

type queueListAnswer struct{ Body QueueList }

func (s *Server) queueRoutes() {
	register(s, route{
		id: "list-queues", method: http.MethodGet, path: "/v1/queues", tag: "queues",
		summary: "List the queues that are configured, changed or ever used",
	}, func(ctx context.Context, in *struct{ call }) (*queueListAnswer, error) {
		infos, err := s.opt.Store.ListQueues(ctx, in.tenant)
		if err != nil {
			return nil, err
		}
		list := QueueList{Queues: make([]Queue, len(infos))}
		for i, q := range infos {
			list.Queues[i] = viewQueue(q)
		}
		return &queueListAnswer{Body: list}, nil
	})
	register(s, route{
		id: "get-queue", method: http.MethodGet, path: "/v1/queues/{queue}", tag: "queues", summary: "Show one queue",
	}, func(ctx context.Context, in *queuePath) (*queueAnswer, error) {
		q, err := s.opt.Store.GetQueue(ctx, in.tenant, in.Name)
		if errors.Is(err, queue.ErrNotFound) || errors.Is(err, queue.ErrInvalid) {
			return nil, newProblem(CodeNotFound, "no queue %.140q", in.Name)
		}
		if err != nil {
			return nil, err
		}
		return &queueAnswer{Body: viewQueue(q)}, nil
	})
	register(s, route{
		id: "set-queue", method: http.MethodPatch, path: "/v1/queues/{queue}", tag: "queues",
		summary:     "Change settings of a queue",
		description: "A field that is absent stays; null returns to the configured value. The change is durable and applies to the backlog at once.",
		body:        s.jsonBody(true, schemaOf[QueueOverrides](s)),
	}, s.setQueue)
}

func (s *Server) setQueue(ctx context.Context, in *queuePath) (*queueAnswer, error) {
	if err := queue.ValidName("queue", in.Name); err != nil {
		return nil, err
	}
	var change queue.QueueChange
	given := false
	err := in.scan(false, smallBodyBytes, func(sc *jsonin.Scanner) error {
		return sc.Object(func(key string) error {
			given = true
			return readQueueField(fieldReader{s: sc}, key, &change)
		})
	})
	if err != nil {
		return nil, err
	}
	if !given {
		return nil, invalid("body", "changes nothing; give at least one of %s", strings.Join(queueFields(), ", "))
	}
	if err := change.Validate(); err != nil {
		return nil, err
	}
	q, err := s.opt.Store.SetQueue(ctx, in.tenant, in.Name, change)
	if err != nil {
		return nil, err
	}
	return &queueAnswer{Body: viewQueue(q)}, nil
}

// queueFields are the settings of a queue in a request.
func queueFields() []string {
	return []string{"weight", "priority", "paused", "max_running", "max_per_key", "rate"}
}

func readQueueField(f fieldReader, key string, change *queue.QueueChange) error {
	if !slices.Contains(queueFields(), key) {
		return f.unknown(key, nil, queueFields()...)
	}
	null, err := f.null()
	if err != nil {
		return err
	}
	switch key {
	case "weight":
		if change.ClearWeight = null; !null {
			w, err := f.number(key)
			change.Set.Weight = &w
			return err
		}
	case "priority":
		if change.ClearPriority = null; !null {
			p, err := f.integer(key, queue.PriorityMin, queue.PriorityMax)
			change.Set.Priority = &p
			return err
		}
	case "paused":
		if change.ClearPaused = null; !null {
			p, err := f.boolean(key)
			change.Set.Paused = &p
			return err
		}
	case "max_running":
		if change.ClearMaxRunning = null; !null {
			n, err := f.integer(key, 1, queue.RunningCapMax)
			change.Set.MaxRunning = &n
			return err
		}
	case "max_per_key":
		if change.ClearMaxPerKey = null; !null {
			n, err := f.integer(key, 1, queue.RunningCapMax)
			change.Set.MaxPerKey = &n
			return err
		}
	case "rate":
		if change.ClearRate = null; !null {
			text, err := f.filled(key, queue.NameMax)
			if err != nil {
				return err
			}
			r, err := queue.ParseRate(text)
			change.Set.Rate = &r
			return err
		}
	}
	return nil
}

func viewQueue(q queue.QueueInfo) Queue {
	v := Queue{
		Name: q.Name, Weight: q.Weight, Priority: q.Priority, Paused: q.Paused,
		MaxPerKey: q.MaxPerKey, Rate: Text(q.Rate.String()), Waiting: Text(q.Waiting),
		Override: QueueOverrides{Weight: q.Override.Weight, Priority: q.Override.Priority, Paused: q.Override.Paused,
			MaxRun: q.Override.MaxRunning, PerKey: q.Override.MaxPerKey},
		Scheduled: q.Scheduled, Ready: q.Ready, Running: q.Running, Dead: q.Dead, Served: q.Served,
	}
	if q.MaxRunning > 0 {
		v.MaxRun = &q.MaxRunning
	}
	if r := q.Override.Rate; r != nil {
		text := r.String()
		v.Override.Rate = &text
	}
	if q.Ready > 0 {
		ms := q.OldestAge.Milliseconds()
		v.OldestMS = &ms
	}
	return v
}
