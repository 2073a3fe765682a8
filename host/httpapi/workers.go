package httpapi

import (
	"context"
	"net/http"

	"github.com/taskhost/taskhost/host/workers"
)

// Workers lists the hosts of the store; *workers.Registry is one.
type Workers interface {
	List(ctx context.Context) ([]workers.Worker, error)
}

// Worker is a host in an answer.
type Worker struct {
	ID       string    `json:"id"`
	Live     bool      `json:"live" doc:"seen lately; a host that stops in order leaves the list"`
	Since    Timestamp `json:"since"`
	LastSeen Timestamp `json:"last_seen"`
	Queues   []string  `json:"queues" doc:"that it serves; empty = all"`
	Slots    int       `json:"slots" doc:"jobs at once at most; 0 = it runs none"`
	Running  int       `json:"running" doc:"jobs that ran when it was last seen"`
	Version  Text      `json:"version"`
}

// WorkerList lists hosts by id.
type WorkerList struct {
	Workers    []Worker `json:"workers"`
	NextCursor Text     `json:"next_cursor" doc:"always null: the list is whole"`
}

type workerListAnswer struct{ Body WorkerList }

func (s *Server) workerRoutes() {
	if s.opt.Workers == nil {
		return
	}
	register(s, route{
		id: "list-workers", method: http.MethodGet, path: "/v1/workers", tag: "workers", summary: "List the hosts of the store, also those that vanished lately",
	}, func(ctx context.Context, _ *struct{ call }) (*workerListAnswer, error) {
		all, err := s.opt.Workers.List(ctx)
		if err != nil {
			return nil, err
		}
		list := WorkerList{Workers: make([]Worker, len(all))}
		for i, w := range all {
			list.Workers[i] = Worker{ID: w.ID, Live: w.Live, Since: Timestamp{w.Since}, LastSeen: Timestamp{w.LastSeen}, Queues: append([]string{}, w.Queues...),
				Slots: w.Slots, Running: w.Running, Version: Text(w.Version)}
		}
		return &workerListAnswer{Body: list}, nil
	})
}
