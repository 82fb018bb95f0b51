// Package sticky is a balancer that sends all calls with the same key to one server, for servers
// with state between calls. The choice depends only on the key and the available servers, so that
// all callers agree without coordination (rendezvous hashing). When a server leaves, only its keys
// move.
package sticky

import (
	"context"
	"hash/fnv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/base"
)

// Policy is the balancer's name in a service config.
const Policy = "waybill_sticky"

func init() { //nolint:gochecknoinits // gRPC finds balancers by name
	balancer.Register(base.NewBalancerBuilder(Policy, pickers{}, base.Config{HealthCheck: true}))
}

type keyOf struct{}

// With sets the key of the calls of a context. Calls without one have the empty key.
func With(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyOf{}, key)
}

// Unary derives the key of calls from their requests.
func Unary(key func(req any) string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoke(With(ctx, key(req)), method, req, reply, cc, opts...)
	}
}

type pickers struct{}

// Build returns a picker for the available servers.
func (pickers) Build(info base.PickerBuildInfo) balancer.Picker {
	if len(info.ReadySCs) == 0 {
		return base.NewErrPicker(balancer.ErrNoSubConnAvailable)
	}
	p := make(picker, 0, len(info.ReadySCs))
	for conn, sc := range info.ReadySCs {
		p = append(p, server{sc.Address.Addr, conn})
	}
	return p
}

type server struct {
	addr string
	conn balancer.SubConn
}

type picker []server

// Pick chooses the server with the highest weight for the key.
func (p picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	key, _ := info.Ctx.Value(keyOf{}).(string)
	best, most := p[0], weight(key, p[0].addr)
	for _, s := range p[1:] {
		if w := weight(key, s.addr); w > most || w == most && s.addr > best.addr {
			best, most = s, w
		}
	}
	return balancer.PickResult{SubConn: best.conn}, nil
}

// weight is the same in every process.
func weight(key, addr string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(addr))
	// The last bytes hardly affect FNV's high bits, so mix them (the finalizer of SplitMix64).
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
