package peer

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/host/probe"
)

// Service is another service whose health is asked for.
type Service struct {
	Name   string
	health healthv1.HealthClient
	// Reached says that it served once since this process began, and away why it did not when it
	// was looked at last; nil: it serves.
	Reached bool
	Away    error
}

func NewService(name string, conn grpc.ClientConnInterface) *Service {
	return &Service{Name: name, health: healthv1.NewHealthClient(conn)}
}

// Look asks the service, and reports whether the answer is another one than before.
func (s *Service) Look(ctx context.Context) (changed bool) {
	res, err := s.health.Check(ctx, &healthv1.HealthCheckRequest{Service: probe.HealthOfAll})
	if errors.Is(ctx.Err(), context.Canceled) { // this process ends, and says nothing of others
		return false
	}
	if err == nil && res.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		err = errors.New("it is not serving")
	}
	changed = (err == nil) != (s.Away == nil)
	s.Away, s.Reached = err, s.Reached || err == nil
	return changed
}
