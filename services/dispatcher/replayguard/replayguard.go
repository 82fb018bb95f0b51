// Package replayguard prevents external calls during a replay.
//
// A replay uses only what its source recorded. The engine marks the context of a replayed run with
// Forbid. Every client of a model, a tool or an agent calls Check immediately before it sends, so no
// code path to a client can bypass the guard (OpenWOP host contract §7.2).
package replayguard

import (
	"context"
	"errors"
)

// ErrForbidden means that the context belongs to a replay.
var ErrForbidden = errors.New("external calls are disabled during replay")

type contextKey struct{}

// Forbid returns a context in which Check fails.
func Forbid(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, true)
}

// Check returns ErrForbidden in a context from Forbid.
func Check(ctx context.Context) error {
	if ctx.Value(contextKey{}) != nil {
		return ErrForbidden
	}
	return nil
}
