// Package replayguard keeps what must reach nobody outside from doing so.
//
// A replay is served from what its source recorded. Whoever works on one seals its
// context, and every client of a model, a tool or an agent refuses a sealed one: the guard
// stands where the effect would leave, whatever way led there (OpenWOP host contract §7.2).
package replayguard

import (
	"context"
	"errors"
)

// ErrSealed says that something would have left that must not.
var ErrSealed = errors.New("a replay reaches nobody outside")

type key struct{}

// Off gives a context in which nothing leaves.
func Off(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// Check is ErrSealed in a sealed context.
func Check(ctx context.Context) error {
	if ctx.Value(key{}) != nil {
		return ErrSealed
	}
	return nil
}
