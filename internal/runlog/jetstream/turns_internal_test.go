package jetstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natslink"
)

// Other readers wait for the reader of a long run, so it must not wait for a silent server.
func TestOneOfFew_GivesItsTurnBack(t *testing.T) {
	t.Parallel()
	nc := natsdtest.Connect(t)
	nc.Close() // network I/O does not work in a bubble
	for name, c := range map[string]struct{ patience, turn time.Duration }{
		"with patience":                {patience: 2 * time.Second, turn: 2 * time.Second},
		"as long as the caller allows": {turn: silence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &Log{cfg: Config{Patience: c.patience}, link: natslink.Watch(nc), scans: semaphore.NewWeighted(1)}
				begun, first := time.Now(), make(chan error, 1)
				go func() {
					first <- l.oneOfFew(t.Context(), func(ctx context.Context, heard func()) error {
						time.Sleep(c.turn - time.Millisecond) //nolint:forbidigo // in a bubble
						heard()
						<-ctx.Done()
						return ctx.Err()
					})
				}()
				synctest.Wait()
				took, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorIs(t, l.oneOfFew(took, func(context.Context, func()) error { return nil }), context.DeadlineExceeded, "it is the other's turn")
				require.ErrorIs(t, <-first, context.Canceled)
				require.Equal(t, 2*c.turn-time.Millisecond, time.Since(begun), "counted from the last frame")
				require.NoError(t, l.oneOfFew(t.Context(), func(context.Context, func()) error { return nil }))
			})
		})
	}
}
