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

// Class is the priority of a request under load.
type Class int

// The classes. Start is rejected first, Urgent last.
const (
	// Urgent requests free capacity or continue admitted runs. They may use all request
	// slots.
	Urgent Class = iota
	// Ordinary requests read, or change something other than runs.
	Ordinary
	// Start requests create new work.
	Start
	// Free requests report the host's state and are never rejected.
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

// ClassOf returns the class of a public method.
func ClassOf(method string) Class {
	if c, ok := classes[method]; ok {
		return c
	}
	return Ordinary
}

// Config limits admitted requests.
type Config struct {
	// MaxRequests limits concurrent requests, excluding streams. An eighth is reserved for
	// urgent requests. 0 means no limit.
	MaxRequests int64
	// MaxStarts limits concurrent starts of runs; 0 means no limit.
	MaxStarts int64
	// StartDelay is the target delay from a run's request to its first step. Above it fewer
	// starts are admitted. 0 disables this limit.
	StartDelay time.Duration
}

// DefaultConfig keeps a gateway of one core within 256 MB.
func DefaultConfig() Config {
	return Config{MaxRequests: 2000, MaxStarts: 500, StartDelay: 500 * time.Millisecond}
}

// Validate returns all errors, joined.
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

// Bounds of StartDelay. The delay is measured every 0.2 s, so it cannot be held below the lower one.
const (
	minStartDelay = 100 * time.Millisecond
	maxStartDelay = time.Minute
)

// Gate admits requests. It is safe for concurrent use.
type Gate struct {
	cfg              Config
	limiter          *StartLimiter
	tenant           func(credential string) string
	requests, starts atomic.Int64
	// refused counts rejections by reason. turn spreads the retry times of rejected callers.
	refused [reasons]atomic.Int64
	turn    atomic.Int64
}

// reason is why a request was rejected.
type reason int

const (
	tooManyRequests reason = iota
	tooManyStarts
	tooSlow
	reasons // the number of reasons
)

// names are the metric labels of the reasons.
var names = [reasons]string{"requests", "starts", "start_delay"}

// NewGate makes a gate. tenant returns the tenant of a credential, so that tenants get equal
// shares; it returns "" for unknown credentials.
func NewGate(cfg Config, clock func() time.Time, tenant func(credential string) string) *Gate {
	return &Gate{cfg: cfg, limiter: NewStartLimiter(cfg.StartDelay, clock), tenant: tenant}
}

// Enter admits a request; leave releases its slot. An error is meant for the caller: the
// request had no effect. It contains nothing the caller wrote and does not reveal whether
// the credential is valid.
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

// enter increments n unless the limit is reached; 0 means no limit.
func enter(n *atomic.Int64, limit int64) bool {
	if now := n.Add(1); limit > 0 && now > limit {
		n.Add(-1)
		return false
	}
	return true
}

// longestRetry is the longest Retry-After, in seconds. Rejected callers get different
// values, so that they do not retry simultaneously.
const longestRetry = 3

func (g *Gate) refuse(why reason) error {
	g.refused[why].Add(1)
	wait := time.Duration((g.turn.Add(1)-1)%longestRetry+1) * time.Second
	return fault.New(fault.ServiceUnavailable, "the host is at capacity; the request had no effect, retry").After(wait)
}

// Unary admits calls of gRPC clients.
func (g *Gate) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	leave, err := g.Enter(ClassOf(info.FullMethod), auth.Credential(ctx))
	if err != nil {
		return nil, err
	}
	defer leave()
	return next(ctx, req)
}
