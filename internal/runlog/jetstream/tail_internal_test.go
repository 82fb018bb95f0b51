package jetstream

import (
	"testing"
	"time"

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

// A server that was killed may have lost the end of what it had, and nobody tells it.
func TestRun_IsReadOfTheLeaderWhereAServerLacksSome(t *testing.T) {
	t.Parallel()
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	const frames = readSingly + 20
	for name, lost := range map[string]uint64{"its last": frames, "one amid it": frames - 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := copyOf(t, run, frames, lost)
			l.leader, l.alone, l.cfg.Patience = copyOf(t, run, frames).leader, false, 2*time.Second
			got, err := l.Run(t.Context(), run)
			require.NoError(t, err)
			require.Len(t, got, frames)
		})
	}
}
