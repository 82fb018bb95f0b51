package webhook_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/wire"
)

func TestPast_WithoutWebhooksWaitsForNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		began := time.Now()
		require.NoError(r.t, r.svc.Past(r.t.Context(), 1000))
		require.Zero(r.t, time.Since(began))
	})
}

// A position is past when a crash of the feed cannot make it read the frames before it again.
func TestPast_WaitsForTheStoredPositionOfTheFeed(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		p := &power{}
		stop := r.startOn(p)
		r.hook(wire.EventRunStarted)
		r.run("a")
		r.say("a", wire.EventRunStarted)
		r.pass(10 * time.Second)
		require.NoError(r.t, r.svc.Past(r.t.Context(), r.heads["a"].Pos))

		p.off.Store(true) // the feed goes on, and cannot store its position
		r.say("a", wire.EventRunCompleted)
		r.settle()
		require.ErrorIs(r.t, r.svc.Past(r.t.Context(), r.heads["a"].Pos), runlog.ErrUnavailable)
		stop()
		r.start()
		require.NoError(r.t, r.svc.Past(r.t.Context(), r.heads["a"].Pos))
	})
}
