// Package natslink ends the waiting for answers that a lost connection to NATS took
// with it.
//
// The client connects again by itself, but a question that was on its way goes on
// waiting for what the server said on the old connection, until the caller's time is
// up: seconds for nothing, each time a server restarts.
package natslink

import (
	"context"
	"errors"
	"sync"

	"github.com/nats-io/nats.go"
)

// ErrLost is why there is no answer. Whether the server did what it was asked is not
// known.
var ErrLost = errors.New("the connection was lost before the answer came")

// Link is one connection. It is safe for concurrent use.
type Link struct {
	mu     sync.Mutex      // guards what follows
	intact context.Context //nolint:containedctx // ends when the connection is lost
	broken context.CancelCauseFunc
}

// Watch watches a connection until it is closed.
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
	if nc.IsClosed() { // before anybody listened
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

// Ask calls f, and calls it again when the connection was lost under it: f must be
// fit to be called twice.
func (l *Link) Ask(ctx context.Context, f func(context.Context) error) error {
	for {
		err := l.Once(ctx, f)
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return err
		}
	}
}

// Once calls f. Its error is an ErrLost when the connection was lost under it.
func (l *Link) Once(ctx context.Context, f func(context.Context) error) error {
	intact := l.now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(intact, func() { cancel(ErrLost) })()
	err := f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), ErrLost) {
		return ErrLost // and not that somebody has given up, which err may say
	}
	return err
}
