package peer

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/host/probe"
)

// Watch checks the health of the other services.
type Watch struct {
	log      *slog.Logger
	services []*service
}

// Check checks all services concurrently. It logs changes with the services' addresses. The returned
// error has only their names.
func (w *Watch) Check(ctx context.Context) error {
	var wg sync.WaitGroup
	changed := make([]bool, len(w.services))
	for i, s := range w.services {
		wg.Go(func() { changed[i] = s.check(ctx) })
	}
	wg.Wait()
	for i, s := range w.services {
		switch {
		case !changed[i]:
		case s.failure != nil:
			w.log.Warn("another service is away", "peer", s.name, "error", s.failure)
		default:
			w.log.Warn("another service is there", "peer", s.name) // at the level of the warning that it ends
		}
	}
	return w.report(func(s *service) bool { return s.failure != nil })
}

// NeverServed returns the services that no Check has found serving yet.
func (w *Watch) NeverServed() error { return w.report(func(s *service) bool { return !s.served }) }

// report returns an error with the missing services; nil if none is missing.
func (w *Watch) report(missing func(*service) bool) error {
	var names []string
	for _, s := range w.services {
		if missing(s) {
			names = append(names, s.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return probe.Plain("no " + strings.Join(names, ", no ") + " service can be reached")
}

// service is another service whose health is checked.
type service struct {
	name   string
	health healthv1.HealthClient
	// served is true if it has served once since this process started.
	served bool
	// failure is why the last check failed; nil if it serves.
	failure error
}

func newService(name string, conn grpc.ClientConnInterface) *service {
	return &service{name: name, health: healthv1.NewHealthClient(conn)}
}

// check checks the service, and reports whether the result differs from the last one.
func (s *service) check(ctx context.Context) (changed bool) {
	res, err := s.health.Check(ctx, &healthv1.HealthCheckRequest{Service: probe.HealthOfAll})
	if errors.Is(ctx.Err(), context.Canceled) { // this process is ending
		return false
	}
	if err == nil && res.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		err = errors.New("it is not serving")
	}
	changed = (err == nil) != (s.failure == nil)
	s.failure, s.served = err, s.served || err == nil
	return changed
}
