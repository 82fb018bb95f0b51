// Package callguard decides whether this process may begin an outside call for a run.
//
// A replay uses only what its source recorded. The engine marks the context of a replayed run with
// Forbid. Every client of a model, a tool or an agent calls Check immediately before it sends, so no
// code path to a client can bypass the guard (OpenWOP host contract §7.2).
//
// For other runs, the engine adds a Guard to the context of each effect. An effect calls Begin
// immediately before each of its calls: the first one, further rounds of an answer, and repetitions.
// Waits before a call use the context of Waiting, so that they end with the permission to call.
package callguard

import (
	"context"
	"errors"
	"fmt"
)

// ErrForbidden means that the context belongs to a replay.
var ErrForbidden = errors.New("external calls are disabled during replay")

// ErrNotBegun means that a call was not sent, because this process may not begin it.
var ErrNotBegun = errors.New("the call was not sent")

// Guard is the permission of a process to begin calls for a run.
type Guard struct {
	// Quiet ends when no further call may begin; its cause is the reason.
	Quiet context.Context //nolint:containedctx // the time in which calls may begin
	// Await returns once the process owns its runs; an error means that it never will.
	Await func(ctx context.Context) error
}

type (
	forbidKey struct{}
	guardKey  struct{}
)

// Forbid returns a context in which Check fails.
func Forbid(ctx context.Context) context.Context {
	return context.WithValue(ctx, forbidKey{}, true)
}

// Check returns ErrForbidden in a context from Forbid.
func Check(ctx context.Context) error {
	if ctx.Value(forbidKey{}) != nil {
		return ErrForbidden
	}
	return nil
}

// With returns a context whose calls begin only with the permission of a guard.
func With(ctx context.Context, g Guard) context.Context {
	return context.WithValue(ctx, guardKey{}, g)
}

// Completing returns a context for a call that completes an answer of which only this process has the
// first part. Without it the earlier calls would be repeated, so it may begin while the process
// drains.
func Completing(ctx context.Context) context.Context {
	g, ok := ctx.Value(guardKey{}).(Guard)
	if !ok {
		return ctx
	}
	g.Quiet = context.WithoutCancel(ctx)
	return With(ctx, g)
}

// Waiting returns a context for a wait before a call. It also ends when no further call may begin.
func Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	g, ok := ctx.Value(guardKey{}).(Guard)
	if !ok {
		return context.WithCancel(ctx)
	}
	out, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.Quiet, func() { cancel(notBegun(context.Cause(g.Quiet))) })
	return out, func() { stop(); cancel(nil) }
}

// Begin returns nil if a call may be sent now. It waits while another process might own the run.
// Errors: ErrForbidden; ErrNotBegun with its cause, also if ctx ends.
func Begin(ctx context.Context) error {
	if err := Check(ctx); err != nil {
		return err
	}
	g, ok := ctx.Value(guardKey{}).(Guard)
	switch {
	case ctx.Err() != nil:
		return notBegun(context.Cause(ctx))
	case !ok:
		return nil
	case g.Quiet.Err() != nil:
		return notBegun(context.Cause(g.Quiet))
	}
	waiting, cancel := Waiting(ctx)
	defer cancel()
	switch err := g.Await(waiting); {
	case err == nil:
		return nil
	case waiting.Err() != nil:
		return notBegun(context.Cause(waiting))
	default:
		return notBegun(err)
	}
}

func notBegun(cause error) error {
	if errors.Is(cause, ErrNotBegun) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrNotBegun, cause)
}
