package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/taskhost/taskhost/host/httpapi/jsonin"
	"github.com/taskhost/taskhost/queue"
)

// Queue is a queue in an answer: the settings in force, where they come from, and what it holds.
type Queue struct {
	Name      string         `json:"name"`
	Weight    float64        `json:"weight"`
	Priority  int            `json:"priority" doc:"default priority of its jobs"`
	Paused    bool           `json:"paused" doc:"jobs are accepted, none is started"`
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
		return nil, invalid("body", "changes nothing; give at least one of weight, priority, paused")
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

func readQueueField(f fieldReader, key string, change *queue.QueueChange) error {
	switch key {
	case "weight", "priority", "paused":
	default:
		return f.unknown(key, []string{"max_running", "rate"}, "weight", "priority", "paused")
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
	}
	return nil
}

func viewQueue(q queue.QueueInfo) Queue {
	v := Queue{
		Name: q.Name, Weight: q.Weight, Priority: q.Priority, Paused: q.Paused,
		Override:  QueueOverrides{Weight: q.Override.Weight, Priority: q.Override.Priority, Paused: q.Override.Paused},
		Scheduled: q.Scheduled, Ready: q.Ready, Running: q.Running, Dead: q.Dead, Served: q.Served,
	}
	if q.Ready > 0 {
		ms := q.OldestAge.Milliseconds()
		v.OldestMS = &ms
	}
	return v
}
