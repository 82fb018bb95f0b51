package jetstream

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// copyOf is a server's copy of a log with one run, which has lost some frames.
func copyOf(t *testing.T, run subject.Run, frames int, lost ...uint64) *Log {
	t.Helper()
	l, stream := losing(t)
	f := frame.NewStart(run, []byte(`{}`))
	for range frames {
		pos, err := l.Append(t.Context(), f, f.Pos)
		require.NoError(t, err)
		f.Pos = pos
		next := frame.New(run, subject.Wake, f.Head(), nil)
		next.Pos = f.Pos
		f = next
	}
	for _, pos := range lost {
		require.NoError(t, stream.DeleteMsg(t.Context(), pos))
	}
	return l
}

// A killed server may have lost the end of its data without reporting it.
func TestRun_IsReadFromTheLeaderIfAServerLacksFrames(t *testing.T) {
	t.Parallel()
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	for _, frames := range []int{10, 100} { // fewer than a page has, and more
		last := uint64(frames)
		for name, lost := range map[string][]uint64{
			"nothing":      nil,
			"its last":     {last},
			"its last two": {last - 1, last},
			"one amid it":  {last - 5},
		} {
			t.Run(fmt.Sprint(name, " of ", frames), func(t *testing.T) {
				t.Parallel()
				l := copyOf(t, run, frames, lost...)
				l.leader, l.alone, l.cfg.Patience = copyOf(t, run, frames).leader, false, 2*time.Second
				got, err := l.Run(t.Context(), run)
				require.NoError(t, err)
				require.Len(t, got, frames)
				require.NoError(t, linked(got))
			})
		}
	}
}

// A restarted server may be far behind, and a dispatcher that takes over many runs reads many from
// it.
func TestRun_OfALaggingServerNeedsNoTurn(t *testing.T) {
	t.Parallel()
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	const frames = 5
	l := copyOf(t, run, frames, frames-1, frames)
	l.leader, l.alone, l.cfg.Patience = copyOf(t, run, frames).leader, false, 20*time.Second
	require.True(t, l.scans.TryAcquire(maxScanned), "a long run is being read all the time")
	var all sync.WaitGroup
	for range 300 {
		all.Go(func() {
			if got, err := l.Run(t.Context(), run); assert.NoError(t, err) {
				assert.Len(t, got, frames)
			}
		})
	}
	all.Wait()
}
