package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/protocol/fault"
)

// The names of what gRPC's health service tells of a process: whether it has all that it needs,
// and whether it has what it needs to read, which is its own stores and no other service.
const (
	healthOfAll   = ""
	healthOfReads = "reads"
)

// service is another service whose health is asked for.
type service struct {
	name   string
	health healthv1.HealthClient
	// reached says that it served once since this process began, and away why it did not when it
	// was looked at last; nil: it serves.
	reached bool
	away    error
}

func newService(name string, conn grpc.ClientConnInterface) *service {
	return &service{name: name, health: healthv1.NewHealthClient(conn)}
}

// look asks the service, and reports whether the answer is another one than before.
func (s *service) look(ctx context.Context) (changed bool) {
	res, err := s.health.Check(ctx, &healthv1.HealthCheckRequest{Service: healthOfAll})
	if errors.Is(ctx.Err(), context.Canceled) { // this process ends, and says nothing of others
		return false
	}
	if err == nil && res.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		err = errors.New("it is not serving")
	}
	changed = (err == nil) != (s.away == nil)
	s.away, s.reached = err, s.reached || err == nil
	return changed
}

// lookAround asks all other services at once. The log is told who goes and who comes back, and
// at which address; what is returned may be told to anybody.
func (h *host) lookAround(ctx context.Context) error {
	var wg sync.WaitGroup
	changed := make([]bool, len(h.peers))
	for i, p := range h.peers {
		wg.Go(func() { changed[i] = p.look(ctx) })
	}
	wg.Wait()
	for i, p := range h.peers {
		switch {
		case !changed[i]:
		case p.away != nil:
			h.log.Warn("another service is away", "peer", p.name, "error", p.away)
		default:
			h.log.Info("another service is there", "peer", p.name)
		}
	}
	return h.without(func(p *service) bool { return p.away != nil })
}

// unmet are the other services that were not there yet since this process began.
func (h *host) unmet() error { return h.without(func(p *service) bool { return !p.reached }) }

// without names the services of which lacking is true; nil: of none.
func (h *host) without(lacking func(*service) bool) error {
	var names []string
	for _, p := range h.peers {
		if lacking(p) {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("no %s service can be reached", strings.Join(names, ", no "))
}

// both looks at what is a service's own and at the others at the same time: one that is silent
// leaves time for the rest.
func both(ctx context.Context, own, others func(context.Context) error) (mine, theirs error) {
	var wg sync.WaitGroup
	if others != nil {
		wg.Go(func() { theirs = others(ctx) })
	}
	mine = own(ctx)
	wg.Wait()
	return mine, theirs
}

// either calls replicas that have all that they need and, for what only reads while there is
// none of them, one that can read: no other service is needed for that.
type either struct {
	grpc.ClientConnInterface
	reads   grpc.ClientConnInterface
	methods []string
}

// Invoke makes a call.
func (e either) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	err := e.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	if !errors.Is(err, fault.New(fault.ServiceUnavailable, "")) || !slices.Contains(e.methods, method) {
		return err
	}
	return e.reads.Invoke(ctx, method, args, reply, opts...)
}
