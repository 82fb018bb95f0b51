package engine

import (
	"context"

	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// inflight are the effects of a session that have not ended. Its methods are called by the writer
// only. Effects reach the writer through port.
type inflight struct {
	// ctx is the lifetime of all effects; nil before the first one.
	ctx    context.Context //nolint:containedctx // the effects' lifetime, ended by stop
	cancel context.CancelFunc
	// guard is the permission of the process to begin calls. quieten ends that of these effects.
	guard   callguard.Guard
	quieten context.CancelCauseFunc
	port    writerPort
	on      *goroutines
	// running is the number of effects whose results the writer has not received.
	running int
	effects map[attempt]cancellable
}

// attempt identifies one attempt of a node's effect.
type attempt struct {
	node   string
	number int
}

func attemptOf(e machine.Effect) attempt { return attempt{e.NodeID, e.Attempt} }

// cancellable is an effect that can be cancelled while its run continues.
type cancellable struct {
	effect machine.Effect
	cancel context.CancelFunc
}

// effectFunc performs an effect. It runs on its own goroutine and must not read the machine's
// state.
type effectFunc func(ctx context.Context, port writerPort) model.Result

// start performs an effect on another goroutine and sends its result to the writer. The effects end
// with the ctx of the first one.
func (f *inflight) start(ctx context.Context, e machine.Effect, perform effectFunc) {
	if f.ctx == nil {
		f.open(ctx)
	}
	f.running++
	own, cancel := context.WithCancel(f.ctx)
	f.effects[attemptOf(e)] = cancellable{e, cancel}
	port := f.port
	f.on.run(func() { port.sendResult(effectResult{e, perform(own, port)}) })
}

func (f *inflight) open(ctx context.Context) {
	quiet, quieten := context.WithCancelCause(f.guard.Quiet)
	guarded := callguard.With(ctx, callguard.Guard{Quiet: quiet, Await: f.guard.Await})
	f.quieten = quieten
	f.ctx, f.cancel = context.WithCancel(guarded)
	f.port = writerPort{requests: make(chan request), results: make(chan effectResult), stopped: f.ctx.Done()}
	f.on, f.effects = newGoroutines(f.ctx.Done()), map[attempt]cancellable{}
}

// received removes an effect whose result the writer received.
func (f *inflight) received(e machine.Effect) {
	f.running--
	if known, ok := f.effects[attemptOf(e)]; ok {
		known.cancel()
		delete(f.effects, attemptOf(e))
	}
}

// abandon stops waiting for the results of the running effects.
func (f *inflight) abandon() { f.running = 0 }

// cancelAll cancels all effects. They report their end to the writer.
func (f *inflight) cancelAll() {
	for _, e := range f.effects {
		e.cancel()
	}
}

// endCalls lets the effects begin no further calls.
func (f *inflight) endCalls() {
	if f.ctx != nil {
		f.quieten(errQuiet)
	}
}

// cancelDropped cancels the effects that the run no longer waits for, for example after a node
// timeout. The writer drops their results.
func (f *inflight) cancelDropped(isCurrent func(machine.Effect) bool) {
	for _, e := range f.effects {
		if !isCurrent(e.effect) {
			e.cancel()
		}
	}
}

// stop cancels all effects and waits for their goroutines.
func (f *inflight) stop() {
	if f.ctx != nil {
		f.cancel()
		f.quieten(nil)
		f.on.wait()
	}
}
