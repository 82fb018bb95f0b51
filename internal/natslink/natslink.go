// Package natslink ends the wait for an answer when the connection to NATS is lost.
//
// The client reconnects by itself, but a request in progress keeps waiting for an answer on the old
// connection until its timeout: seconds without effect, each time a server restarts.
package natslink

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
)

// ErrLost means that the connection was lost before the answer arrived. The server may or may not have
// processed the request.
var ErrLost = errors.New("the connection was lost before the answer came")

// Link is one connection. It is safe for concurrent use.
type Link struct {
	mu     sync.Mutex      // guards the fields below
	intact context.Context //nolint:containedctx // ends when the connection is lost
	broken context.CancelCauseFunc
}

// Watch monitors a connection until it is closed.
func Watch(nc *nats.Conn) *Link {
	l := &Link{}
	l.renew()
	changes := nc.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	go func() {
		for s := range changes {
			l.renew()
			if s == nats.CLOSED {
				nc.RemoveStatusListener(changes)
			}
		}
	}()
	if nc.IsClosed() { // closed before the handlers were set
		nc.RemoveStatusListener(changes)
	}
	return l
}

func (l *Link) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		l.broken(ErrLost)
	}
	l.intact, l.broken = context.WithCancelCause(context.Background())
}

func (l *Link) now() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.intact
}

// Ask calls f, and again if the connection was lost during the call: f must be repeatable.
func (l *Link) Ask(ctx context.Context, f func(context.Context) error) error {
	for {
		err := l.Once(ctx, f)
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return err
		}
	}
}

// Once calls f. It returns ErrLost if the connection was lost during the call.
func (l *Link) Once(ctx context.Context, f func(context.Context) error) error {
	intact := l.now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(intact, func() { cancel(ErrLost) })()
	err := f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), ErrLost) {
		return ErrLost // err may only say that the context ended
	}
	return err
}
