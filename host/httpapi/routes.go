package httpapi

// routes builds every route of the server.
func (s *Server) routes() error {
	s.api = s.newAPI()
	s.enqueueRoutes()
	s.readRoutes()
	s.logRoutes()
	s.steerRoutes()
	s.queueRoutes()
	s.operationRoutes()
	s.workerRoutes()
	s.handlerRoutes()
	s.scheduleRoutes()
	s.healthRoutes()
	s.mux.HandleFunc("/", s.fallback)
	return s.docsRoutes()
}
