package logverify_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/logverify"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

var at = time.Unix(1_700_000_000, 0)

func named(id string) subject.Run {
	return subject.Run{Tenant: "acme", WorkflowID: "w", RunID: id}
}

// chain is a run of three frames, from its record to its end.
func chain(run subject.Run) []*frame.Frame {
	start := frame.NewStart(run, []byte(`{"runId":"`+run.RunID+`"}`))
	step := frame.New(run, subject.Step, start.Head(), []wire.Event{wire.Draft{Type: wire.EventRunStarted}.Place(run.RunID, 0, at)})
	end := frame.New(run, subject.End, step.Head(), []wire.Event{wire.Draft{Type: wire.EventRunCompleted}.Place(run.RunID, 1, at)})
	return []*frame.Frame{start, step, end}
}

// filled is a log of these frames, valid or not.
func filled(t *testing.T, frames ...*frame.Frame) *memory.Log {
	t.Helper()
	log := memory.New()
	after := map[string]uint64{}
	for _, f := range frames {
		pos, err := log.Append(t.Context(), f, after[f.Run.RunID])
		require.NoError(t, err)
		after[f.Run.RunID] = pos
	}
	return log
}

func TestVerify_FindsNothingInAWholeLog(t *testing.T) {
	t.Parallel()
	a, b := chain(named("a")), chain(named("b"))
	r, err := logverify.Verify(t.Context(), filled(t, a[0], b[0], b[1], a[1], b[2], a[2]), nil)
	require.NoError(t, err)
	require.Equal(t, &logverify.Report{Frames: 6, Events: 4, Runs: 2, Last: 6}, r)

	r, err = logverify.Verify(t.Context(), memory.New(), nil)
	require.NoError(t, err)
	require.Zero(t, *r)
}

func TestVerify_NamesTheFrameAndItsRun(t *testing.T) {
	t.Parallel()
	type place struct {
		rule logverify.Rule
		pos  uint64
		run  string
	}
	run := named("a")
	again := func(f *frame.Frame, events ...wire.Event) *frame.Frame {
		return frame.New(run, subject.Step, f.Head(), events)
	}
	for name, tc := range map[string]struct {
		frames func([]*frame.Frame) []*frame.Frame
		want   []place
	}{
		"a flipped bit": {
			func(f []*frame.Frame) []*frame.Frame { f[1].Body[3] ^= 1; return f },
			[]place{{logverify.Frames, 2, ""}, {logverify.Chain, 3, "a"}},
		},
		"a flipped bit in the last frame": {
			func(f []*frame.Frame) []*frame.Frame { f[2].Body[3] ^= 1; return f },
			[]place{{logverify.Frames, 3, ""}},
		},
		"a frame left out": {
			func(f []*frame.Frame) []*frame.Frame { return []*frame.Frame{f[0], f[2]} },
			[]place{{logverify.Chain, 2, "a"}},
		},
		"a frame behind the end": {
			func(f []*frame.Frame) []*frame.Frame { return append(f, again(f[2])) },
			[]place{{logverify.End, 4, "a"}},
		},
		"events that break a promise": {
			func(f []*frame.Frame) []*frame.Frame {
				return append(f[:2:2], again(f[1], wire.Draft{Type: wire.EventRunStarted}.Place("a", 1, at)))
			},
			[]place{{logverify.Events, 0, "a"}, {logverify.Events, 0, "a"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := filled(t, append(tc.frames(chain(run)), chain(named("sound"))...)...)
			r, err := logverify.Verify(t.Context(), log, nil)
			require.NoError(t, err)
			var got []place
			for _, f := range r.Findings {
				require.NotEmpty(t, f.Message)
				got = append(got, place{f.Rule, f.Pos, f.RunID})
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, 2, r.Runs)
		})
	}
}

// forgetful is a log that has lost some of its frames.
type forgetful struct {
	*memory.Log

	lost func(pos uint64) bool
}

func (l forgetful) Follow(ctx context.Context, pos uint64, handle func([]*frame.Frame) error, damaged func(subject.Run, uint64, error)) error {
	return l.Log.Follow(ctx, pos, func(batch []*frame.Frame) error {
		var kept []*frame.Frame
		for _, f := range batch {
			if !l.lost(f.Pos) {
				kept = append(kept, f)
			}
		}
		return handle(kept)
	}, damaged)
}

// If a whole run is missing, only the positions show it.
func TestVerify_MissesFramesByTheirPositions(t *testing.T) {
	t.Parallel()
	frames := append(chain(named("a")), chain(named("b"))...)
	r, err := logverify.Verify(t.Context(), forgetful{filled(t, frames...), func(pos uint64) bool { return pos <= 3 }}, nil)
	require.NoError(t, err)
	require.Equal(t, []logverify.Finding{{
		Rule:    logverify.Frames,
		Pos:     1,
		Message: "3 of the frames at 1 to 3 are missing",
	}}, r.Findings)
}

func TestVerify_FailsWhereTheLogCannotBeRead(t *testing.T) {
	t.Parallel()
	log := filled(t, chain(named("a"))...)
	log.FailReads(runlog.ErrUnavailable)
	_, err := logverify.Verify(t.Context(), log, nil)
	require.ErrorIs(t, err, runlog.ErrUnavailable)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = logverify.Verify(ctx, filled(t, chain(named("a"))...), nil)
	require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, runlog.ErrUnavailable), err)
}

func TestVerify_AcceptsErasedRuns(t *testing.T) {
	t.Parallel()
	a, b, c := chain(named("a")), chain(named("b")), chain(named("c"))
	log := filled(t, a[0], b[0], b[1], a[1], b[2], a[2], c[0], c[1], c[2])
	for _, run := range []subject.Run{named("a"), named("c")} {
		_, err := log.Mark(t.Context(), run, frame.Requested)
		require.NoError(t, err)
	}
	want := &logverify.Report{Frames: 11, Events: 6, Runs: 1, Erased: 2, Last: 11}
	r, err := logverify.Verify(t.Context(), log, nil) // marked only
	require.NoError(t, err)
	require.Equal(t, want, r)

	require.NoError(t, log.Purge(t.Context(), &frame.Frame{Run: named("a")}))
	r, err = logverify.Verify(t.Context(), log, nil)
	require.NoError(t, err)
	require.Empty(t, r.Findings)

	r, err = logverify.Verify(t.Context(), forgetful{log, func(pos uint64) bool { return pos == 5 || pos == 8 }}, nil)
	require.NoError(t, err)
	require.Len(t, r.Findings, 1, "the end of run b is missing; run c is erased")
	require.Equal(t, uint64(5), r.Findings[0].Pos)
}

// The frames of a sealed run are in the cold store. They are checked there, if it is available.
func TestVerify_ReadsSealedRuns(t *testing.T) {
	t.Parallel()
	a, b, c := chain(named("a")), chain(named("b")), chain(named("c"))
	log := filled(t, a[0], b[0], b[1], a[1], b[2], a[2], c[0], c[1], c[2])
	stored := map[subject.Run][]*frame.Frame{}
	for _, id := range []string{"a", "b", "c"} {
		frames, err := log.Run(t.Context(), named(id))
		require.NoError(t, err)
		stored[named(id)] = frames
		var positions []uint64
		for _, f := range frames {
			positions = append(positions, f.Pos)
		}
		require.NoError(t, log.Seal(t.Context(), named(id), frames[2].Head(), positions))
		require.NoError(t, log.Drop(t.Context(), named(id), positions, runlog.Overwrite))
	}
	_, err := log.Mark(t.Context(), named("c"), frame.Requested)
	require.NoError(t, err)
	r, err := logverify.Verify(t.Context(), log, nil)
	require.NoError(t, err)
	require.Equal(t, &logverify.Report{Frames: 4, Erased: 1, Sealed: 2, Last: 13}, r)

	cold := func(_ context.Context, run subject.Run) ([]*frame.Frame, error) {
		if frames, ok := stored[run]; ok {
			return frames, nil
		}
		return nil, frame.ErrDamaged
	}
	r, err = logverify.Verify(t.Context(), log, cold)
	require.NoError(t, err)
	require.Equal(t, &logverify.Report{Frames: 10, Events: 4, Runs: 2, Erased: 1, Sealed: 2, Last: 13}, r)

	stored[named("a")] = stored[named("b")]
	delete(stored, named("b"))
	r, err = logverify.Verify(t.Context(), log, cold)
	require.NoError(t, err)
	require.Len(t, r.Findings, 2)
	for i, id := range []string{"a", "b"} {
		require.Equal(t, logverify.Cold, r.Findings[i].Rule)
		require.Equal(t, id, r.Findings[i].RunID)
	}
}
