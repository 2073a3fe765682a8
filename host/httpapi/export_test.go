package httpapi

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/taskhost/taskhost/queue"
)

// API gives the tests the document and its schemas.
func (s *Server) API() huma.API { return s.api }

// ViewWhole gives the golden files jobs that no store has to produce.
func ViewWhole(j *queue.Job) ([]byte, error) { return marshalPlain(viewWhole(j)) }
