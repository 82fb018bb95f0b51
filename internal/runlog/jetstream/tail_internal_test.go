package jetstream

import (
	"log/slog"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// copyOf is a server's copy of a log with one run, which has lost some frames.
func copyOf(t *testing.T, run subject.Run, frames int, lost ...uint64) *Log {
	t.Helper()
	srv, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	api, err := js.New(nc)
	require.NoError(t, err)
	stream, err := api.CreateStream(t.Context(), js.StreamConfig{Name: subject.Stream, Subjects: []string{subject.All}, AllowDirect: true})
	require.NoError(t, err)
	l, err := Attach(t.Context(), nc)
	require.NoError(t, err)
	f := frame.NewStart(run, []byte(`{}`))
	for range frames {
		f.Pos, err = l.Append(t.Context(), f, f.Pos)
		require.NoError(t, err)
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
