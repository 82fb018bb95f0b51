package admission

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// Class is how early something is refused.
type Class int

// The classes, the one that is refused last first.
const (
	// Urgent makes room, or lets runs go on that were taken: it is answered as long as anything is.
	Urgent Class = iota
	// Ordinary is what reads, and what changes something else than runs.
	Ordinary
	// Start brings new work.
	Start
	// Free is never refused: it tells how the host is.
	Free
)

var classes = map[string]Class{
	openwopv1.Engine_GetCapabilities_FullMethodName:         Free,
	"/grpc.health.v1.Health/Check":                          Free,
	openwopv1.Engine_CreateRun_FullMethodName:               Start,
	openwopv1.Engine_ForkRun_FullMethodName:                 Start,
	openwopv1.Engine_CancelRun_FullMethodName:               Urgent,
	openwopv1.Engine_BulkCancelRuns_FullMethodName:          Urgent,
	openwopv1.Engine_PauseRun_FullMethodName:                Urgent,
	openwopv1.Engine_ResumeRun_FullMethodName:               Urgent,
	openwopv1.Engine_ResolveInterruptByRun_FullMethodName:   Urgent,
	openwopv1.Engine_ResolveInterruptByToken_FullMethodName: Urgent,
}

// ClassOf is that of a method of the public API.
func ClassOf(method string) Class {
	if c, ok := classes[method]; ok {
		return c
	}
	return Ordinary
}

// Config bounds what is taken.
type Config struct {
	// MaxRequests bounds the requests at a time, streams left out; an eighth of them is for those that are
	// urgent. 0: no bound.
	MaxRequests int64
	// MaxStarts bounds the starts at a time; 0: no bound.
	MaxStarts int64
	// StartDelay is how long runs may take from their request to their first step before
	// fewer are taken; 0: they are taken however long it is.
	StartDelay time.Duration
}

// DefaultConfig keeps a gateway of one core within 256 MB.
func DefaultConfig() Config {
	return Config{MaxRequests: 2000, MaxStarts: 500, StartDelay: 500 * time.Millisecond}
}

// Validate returns all that is wrong, joined.
func (c Config) Validate() error {
	var errs []error
	if c.MaxRequests < 0 || c.MaxStarts < 0 {
		errs = append(errs, fmt.Errorf("gateway.admission: maxRequests %d and maxStarts %d need at least 0", c.MaxRequests, c.MaxStarts))
	}
	if c.StartDelay != 0 && (c.StartDelay < minStartDelay || c.StartDelay > maxStartDelay) {
		errs = append(errs, fmt.Errorf("gateway.admission.startDelay: %s: needs %s to %s, or 0", c.StartDelay, minStartDelay, maxStartDelay))
	}
	return errors.Join(errs...)
}

// A delay that is measured every 0.2 s cannot be held at less, and nobody waits for longer.
const (
	minStartDelay = 100 * time.Millisecond
	maxStartDelay = time.Minute
)

// Gate lets requests in. It is safe for concurrent use.
type Gate struct {
	cfg              Config
	limiter          *StartLimiter
	tenant           func(credential string) string
	requests, starts atomic.Int64
	// refused counts by reason, and turn spreads the times at which those who were come again.
	refused [reasons]atomic.Int64
	turn    atomic.Int64
}

// reason is why something was refused.
type reason int

const (
	tooManyRequests reason = iota
	tooManyStarts
	tooSlow
	reasons // how many there are
)

// names are those of the reasons in metrics.
var names = [reasons]string{"requests", "starts", "start_delay"}

// NewGate makes a gate. Tenant tells whose a credential is, so that each tenant has its share;
// it is empty for those of nobody.
func NewGate(cfg Config, clock func() time.Time, tenant func(credential string) string) *Gate {
	return &Gate{cfg: cfg, limiter: NewStartLimiter(cfg.StartDelay, clock), tenant: tenant}
}

// Enter lets a request in; leave gives its place back. An error is for the caller: nothing
// was done, and nothing of what the caller wrote is in it, nor whether the credential is known.
func (g *Gate) Enter(c Class, credential string) (leave func(), err error) {
	if c == Free {
		return func() {}, nil
	}
	limit := g.cfg.MaxRequests
	if c != Urgent {
		limit -= limit / 8
	}
	if !enter(&g.requests, limit) {
		return nil, g.refuse(tooManyRequests)
	}
	if c != Start {
		return func() { g.requests.Add(-1) }, nil
	}
	if !enter(&g.starts, g.cfg.MaxStarts) {
		g.requests.Add(-1)
		return nil, g.refuse(tooManyStarts)
	}
	leave = func() {
		g.starts.Add(-1)
		g.requests.Add(-1)
	}
	if !g.limiter.Take(g.tenant(credential)) {
		leave()
		return nil, g.refuse(tooSlow)
	}
	return leave, nil
}

// enter counts one, unless there are as many as there may be; 0: there is no bound.
func enter(n *atomic.Int64, limit int64) bool {
	if now := n.Add(1); limit > 0 && now > limit {
		n.Add(-1)
		return false
	}
	return true
}

// longestRetry is the longest wait that refused callers are told, in seconds: those who
// were refused together do not come again together.
const longestRetry = 3

func (g *Gate) refuse(why reason) error {
	g.refused[why].Add(1)
	wait := time.Duration((g.turn.Add(1)-1)%longestRetry+1) * time.Second
	return fault.New(fault.ServiceUnavailable, "the host is at its capacity; nothing was done, try again").After(wait)
}

// Unary lets calls of gRPC clients in.
func (g *Gate) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	leave, err := g.Enter(ClassOf(info.FullMethod), auth.Credential(ctx))
	if err != nil {
		return nil, err
	}
	defer leave()
	return next(ctx, req)
}
