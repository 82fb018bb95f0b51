package rpc

import (
	"time"

	"google.golang.org/grpc/resolver"
)

// Lookups resolves names as gRPC does, and again whenever so much time has passed:
// gRPC by itself looks a name up again only when a connection ends, and would not
// learn of a server that is added. It looks no more often than every 30 seconds.
func Lookups(every time.Duration) resolver.Builder {
	return lookups{resolver.Get("dns"), every}
}

type lookups struct {
	resolver.Builder
	every time.Duration
}

// Build begins to look, until the resolver is closed.
func (l lookups) Build(to resolver.Target, cc resolver.ClientConn, o resolver.BuildOptions) (resolver.Resolver, error) {
	r, err := l.Builder.Build(to, steady{cc}, o)
	if err != nil {
		return nil, err
	}
	a := &again{Resolver: r, ended: make(chan struct{}), done: make(chan struct{})}
	go a.look(l.every)
	return a, nil
}

// steady has a name looked up as often while nobody is there of whom it stands: told that no address
// is of no use, gRPC looks less and less often, at last every two minutes, whoever asks.
type steady struct{ resolver.ClientConn }

// UpdateState passes on what was found.
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

// Close ends the looking.
func (a *again) Close() {
	close(a.ended)
	<-a.done
	a.Resolver.Close()
}
