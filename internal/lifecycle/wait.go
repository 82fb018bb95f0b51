package lifecycle

import (
	"context"
	"time"
)

// Wait reports whether the time has passed; false: ctx has ended before.
func Wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
