package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"waybill.dev/waybill/internal/share"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
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
	hostv1.Host_ForkNode_FullMethodName:                     Start,
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
	// MaxUnknown limits concurrent requests of one address without a valid credential, and
	// its open gRPC streams, such as health watches; 0 means no limit. All addresses together
	// get an eighth of MaxRequests.
	MaxUnknown int64
	// Bytes is the pool for the bytes of bodies and answers in flight; nil means no limit.
	Bytes *share.Pool
}

// DefaultConfig keeps a gateway of one core within 256 MB.
func DefaultConfig() Config {
	return Config{MaxRequests: 2000, MaxStarts: 500, StartDelay: 500 * time.Millisecond, MaxUnknown: 64}
}

// Validate returns all errors, joined.
func (c Config) Validate() error {
	var errs []error
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"maxRequests", c.MaxRequests},
		{"maxStarts", c.MaxStarts},
		{"maxUnknown", c.MaxUnknown},
	} {
		if limit.value < 0 {
			errs = append(errs, fmt.Errorf("gateway.admission: %s %d needs at least 0", limit.name, limit.value))
		}
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

// Tenants finds the tenant of a request's credential.
type Tenants struct {
	// Of returns the tenant and the key id of a credential, the same for every spelling of the
	// credential. Both are empty for unknown credentials.
	Of func(credential string) (tenant, keyID string)
	// Sole means that there is one tenant, so that no shares are needed.
	Sole bool
}

// Gate admits requests. It is safe for concurrent use.
type Gate struct {
	cfg     Config
	limiter *StartLimiter
	tenants Tenants
	// requests, starts and bytes are shared by tenants. calls are the open streams of gRPC
	// connections, which may wait for a message.
	requests, starts, bytes, calls *share.Pool
	// unknown and unknownCalls are the parts for callers without a valid credential.
	unknown, unknownCalls *share.Pool
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
	tooManyUnknown
	tooManyBytes
	tooManyCalls
	reasons // the number of reasons
)

// names are the metric labels of the reasons.
var names = [reasons]string{"requests", "starts", "start_delay", "unknown_callers", "bytes", "grpc_streams"}

// NewGate makes a gate.
func NewGate(cfg Config, clock func() time.Time, tenants Tenants) *Gate {
	bytes := cfg.Bytes
	if bytes == nil {
		bytes = share.New(0, true)
	}
	unknown, calls := int64(0), int64(0)
	if cfg.MaxRequests > 0 {
		unknown, calls = max(1, cfg.MaxRequests/unknownPart), callsPerRequest*cfg.MaxRequests
	}
	return &Gate{
		cfg:      cfg,
		limiter:  NewStartLimiter(cfg.StartDelay, clock),
		tenants:  tenants,
		requests: share.New(cfg.MaxRequests, tenants.Sole),
		starts:   share.New(cfg.MaxStarts, tenants.Sole),
		bytes:    bytes,
		calls:    share.New(calls, tenants.Sole),

		unknown:      share.NewEach(unknown, cfg.MaxUnknown),
		unknownCalls: share.NewEach(unknown, cfg.MaxUnknown),
	}
}

const (
	// unknownPart is the part of all requests that callers without a credential get, as a
	// divisor.
	unknownPart = 8
	// callsPerRequest is the number of open gRPC streams for each concurrent request: streams
	// of events are not requests.
	callsPerRequest = 8
)

// Caller is who makes a request.
type Caller struct {
	// tenant is empty for callers without a valid credential, whose name is their address.
	name, tenant string
	// keyID identifies the caller's key; empty for callers without a valid credential.
	keyID string
}

// unknownName marks the names of addresses in pools. No tenant begins with it.
const unknownName = "@"

// Identify returns the caller with a credential, the value of Authorization, at a network
// address without its port. Callers behind one proxy share the address.
func (g *Gate) Identify(credential, address string) Caller {
	if tenant, keyID := g.tenants.Of(credential); tenant != "" {
		return Caller{name: tenant, tenant: tenant, keyID: keyID}
	}
	return Caller{name: unknownName + address}
}

// holding are the places that one request holds.
type holding struct {
	name  string
	pools []*share.Pool
}

func (h *holding) take(p *share.Pool, limit int64) bool {
	if !p.TakeWithin(h.name, 1, limit) {
		h.leave()
		return false
	}
	h.pools = append(h.pools, p)
	return true
}

func (h *holding) leave() {
	for _, p := range h.pools {
		p.Give(h.name, 1)
	}
	h.pools = nil
}

// Enter admits a request; leave releases its slot. An error is meant for the caller: the
// request had no effect. It contains nothing the caller wrote.
func (g *Gate) Enter(c Class, from Caller) (leave func(), err error) {
	if c == Free {
		return func() {}, nil
	}
	limit := g.cfg.MaxRequests
	if c != Urgent {
		limit -= limit / 8
	}
	h := &holding{name: from.name}
	switch {
	case from.tenant == "" && !h.take(g.unknown, g.unknown.Limit()):
		return nil, g.refuse(tooManyUnknown)
	case !h.take(g.requests, limit):
		return nil, g.refuse(tooManyRequests)
	case c == Start && !h.take(g.starts, g.starts.Limit()):
		return nil, g.refuse(tooManyStarts)
	case c == Start && !g.limiter.Take(from.tenant):
		h.leave()
		return nil, g.refuse(tooSlow)
	}
	return h.leave, nil
}

// EnterCall admits an open gRPC stream, before its message is read.
func (g *Gate) EnterCall(from Caller) (leave func(), err error) {
	h := &holding{name: from.name}
	switch {
	case from.tenant == "" && !h.take(g.unknownCalls, g.unknownCalls.Limit()):
		return nil, g.refuse(tooManyUnknown)
	case !h.take(g.calls, g.calls.Limit()):
		return nil, g.refuse(tooManyCalls)
	}
	return h.leave, nil
}

// Bytes returns the account of a request for the bytes that it keeps in memory.
func (g *Gate) Bytes(from Caller) *Account { return &Account{gate: g, name: from.name} }

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
	from := g.Identify(auth.Credential(ctx), PeerAddress(ctx))
	leave, err := g.Enter(ClassOf(info.FullMethod), from)
	if err != nil {
		return nil, err
	}
	defer leave()
	own := g.Bytes(from)
	defer own.Close()
	if m, ok := req.(proto.Message); ok {
		if err := own.Take(int64(proto.Size(m))); err != nil {
			return nil, err
		}
	}
	return next(ctx, req)
}

// PeerAddress returns the network address of a gRPC caller, without its port.
func PeerAddress(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return Host(p.Addr.String())
	}
	return ""
}

// Host returns the host of a network address.
func Host(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
