package jetstream_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// whole appends a run whose events hold a text.
func whole(t *testing.T, log runlog.Appender, id, text string, steps int) subject.Run {
	t.Helper()
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: id}
	head := frame.Head{}
	add := func(f *frame.Frame) {
		pos, err := log.Append(t.Context(), f, head.Pos)
		require.NoError(t, err)
		head = frame.Head{Pos: pos, Hash: f.Hash, Next: f.Last + 1}
	}
	add(frame.NewStart(run, []byte(`{"text":"`+text+`"}`)))
	for i := range steps + 1 {
		kind := subject.Step
		if i == steps {
			kind = subject.End
		}
		e := wire.Draft{Type: wire.EventLogAppended, Payload: []byte(`{"text":"` + text + `"}`)}.Place(id, head.Next, time.UnixMilli(0))
		add(frame.New(run, kind, head, []wire.Event{e}))
	}
	return run
}

// holds reports whether a file below a folder contains a text.
func holds(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		found = found || bytes.Contains(b, []byte(text))
		return err
	}))
	return found
}

// The bytes of erased runs are gone, nothing counts as lost, and both stay so after restarts.
func TestPurge_OverwritesFramesThatDoNotCountAsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv, log := serve(t, dir, testConfig())
	first := whole(t, log, "first", "canary-a", 3)
	kept := whole(t, log, "kept", "canary-b", 3)
	long := whole(t, log, "long", strings.Repeat("canary-c", 1000), 40)
	for _, run := range []subject.Run{first, long} {
		_, err := log.Mark(t.Context(), run, frame.Requested)
		require.NoError(t, err)
	}
	require.NoError(t, log.Purge(t.Context(), &frame.Frame{Run: first}))
	require.NoError(t, log.Check(t.Context()))
	require.Zero(t, log.Lost())
	require.False(t, holds(t, dir, "canary-a"))
	require.True(t, holds(t, dir, "canary-c"))
	require.NoError(t, log.Purge(t.Context(), &frame.Frame{Run: long}))
	for range 2 {
		require.NoError(t, log.Check(t.Context()))
		require.Zero(t, log.Lost())
		require.Empty(t, log.Missing(t.Context()))
		require.False(t, holds(t, dir, "canary-c"))
		require.True(t, holds(t, dir, "canary-b"))
		frames, err := log.Run(t.Context(), kept)
		require.NoError(t, err)
		require.Len(t, frames, 5)
		_, err = log.Last(t.Context(), first)
		require.ErrorIs(t, err, runlog.ErrErased)
		srv.Stop()
		srv, log = serve(t, dir, testConfig())
	}
}

// A record that is gone and belongs to no erased run is lost, next to erased ones.
func TestLost_CountsWhatNoMarkExplains(t *testing.T) {
	t.Parallel()
	nc := natsdtest.Connect(t)
	log, err := jetstream.Open(t.Context(), nc, testConfig())
	require.NoError(t, err)
	erased, other := whole(t, log, "erased", "x", 2), whole(t, log, "other", "x", 2)
	_, err = log.Mark(t.Context(), erased, frame.Requested)
	require.NoError(t, err)
	require.NoError(t, log.Purge(t.Context(), &frame.Frame{Run: erased}))
	api, err := js.New(nc)
	require.NoError(t, err)
	s, err := api.Stream(t.Context(), subject.Stream)
	require.NoError(t, err)
	last, err := log.Last(t.Context(), other)
	require.NoError(t, err)
	require.NoError(t, s.DeleteMsg(t.Context(), last.Pos-1))
	require.NoError(t, log.Check(t.Context()))
	require.Equal(t, uint64(1), log.Lost())
	require.Equal(t, "7-7", log.Missing(t.Context()))
}

// A server never allows the removal of records again.
func TestMark_FailsOnALogOfAnEarlierBuild(t *testing.T) {
	t.Parallel()
	nc := natsdtest.Connect(t)
	api, err := js.New(nc)
	require.NoError(t, err)
	_, err = api.CreateStream(t.Context(), js.StreamConfig{
		Name: subject.Stream, Subjects: []string{subject.All}, DenyDelete: true, DenyPurge: true, AllowDirect: true,
	})
	require.NoError(t, err)
	log, err := jetstream.Open(t.Context(), nc, testConfig())
	require.NoError(t, err)
	run := whole(t, log, "r", "x", 1)
	_, err = log.Mark(t.Context(), run, frame.Requested)
	require.ErrorIs(t, err, runlog.ErrRemovalDenied)
	frames, err := log.Run(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, frames, 3)
}
