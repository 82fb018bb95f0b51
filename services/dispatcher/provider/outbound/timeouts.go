package outbound

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Limit names a time limit of a call.
type Limit string

// The limits, by the names of their settings without the unit.
const (
	LimitConnect   Limit = "connect"
	LimitFirstByte Limit = "firstByte"
	LimitSilence   Limit = "silence"
)

// LimitError ends a call that ran into a time limit.
type LimitError struct {
	Limit Limit
	Value time.Duration
}

// Error names the limit, its value and the settings that change it.
func (e *LimitError) Error() string {
	return fmt.Sprintf("%s (limit %s: %s); raise timeouts.%sMs of the provider in --provider-settings, or in the node's config", limitMessages[e.Limit], e.Limit, e.Value, e.Limit)
}

var limitMessages = map[Limit]string{
	LimitConnect:   "the model's server did not accept the connection in time",
	LimitFirstByte: "the model's server sent no byte of an answer in time",
	LimitSilence:   "the model's server stopped sending for too long",
}

type timeoutsKey struct{}

// Within returns a context whose calls have the time limits t.
func Within(ctx context.Context, t provider.Timeouts) context.Context {
	return context.WithValue(ctx, timeoutsKey{}, t)
}

func timeoutsOf(ctx context.Context) provider.Timeouts {
	t, _ := ctx.Value(timeoutsKey{}).(provider.Timeouts)
	return t
}

// deadline cancels a call when its current limit has passed. Only one limit runs at a time.
type deadline struct {
	cancel context.CancelCauseFunc

	mu    sync.Mutex // guards timer and ended
	timer *time.Timer
	ended bool
}

// start replaces the running limit. After stop it does nothing.
func (d *deadline) start(l Limit, value time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	if !d.ended && value > 0 {
		d.timer = time.AfterFunc(value, func() { d.cancel(&LimitError{l, value}) })
	}
}

// pause stops the running limit until the next start.
func (d *deadline) pause() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
}

// stop ends all limits of the call.
func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// traceConnection starts the limit of the first byte once the request has a connection.
func (d *deadline) traceConnection(ctx context.Context, firstByte time.Duration) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { d.start(LimitFirstByte, firstByte) },
	})
}
