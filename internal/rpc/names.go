package rpc

import (
	"time"

	"google.golang.org/grpc/resolver"
)

// Lookups resolves names as gRPC does, and again after each interval. By default gRPC resolves a
// name again only when a connection ends, so it would not notice an added server. The minimum
// interval is 30 seconds.
func Lookups(every time.Duration) resolver.Builder {
	return lookups{resolver.Get("dns"), every}
}

type lookups struct {
	resolver.Builder
	every time.Duration
}

// Build starts resolving, until the resolver is closed.
func (l lookups) Build(to resolver.Target, cc resolver.ClientConn, o resolver.BuildOptions) (resolver.Resolver, error) {
	r, err := l.Builder.Build(to, steady{cc}, o)
	if err != nil {
		return nil, err
	}
	a := &again{Resolver: r, ended: make(chan struct{}), done: make(chan struct{})}
	go a.look(l.every)
	return a, nil
}

// steady keeps resolving a name at a constant rate while it has no addresses. By default gRPC backs
// off, finally to every two minutes.
type steady struct{ resolver.ClientConn }

// UpdateState passes on the result.
func (s steady) UpdateState(found resolver.State) error {
	_ = s.ClientConn.UpdateState(found)
	return nil
}

type again struct {
	resolver.Resolver
	ended, done chan struct{}
}

func (a *again) look(every time.Duration) {
	defer close(a.done)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-a.ended:
			return
		case <-t.C:
			a.ResolveNow(resolver.ResolveNowOptions{})
		}
	}
}

// Close stops resolving.
func (a *again) Close() {
	close(a.ended)
	<-a.done
	a.Resolver.Close()
}
