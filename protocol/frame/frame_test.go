package frame_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

var run = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}

func chain(t *testing.T) []*frame.Frame {
	t.Helper()
	rec, err := json.Marshal(wire.RunRecord{RunID: "run_1", WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}})
	require.NoError(t, err)
	start := frame.NewStart(run, rec)
	start.Pos = 10
	at := time.Unix(1_700_000_000, 0)
	step := frame.New(run, subject.Step, start.Head(), []wire.Event{
		wire.Draft{Type: wire.EventRunStarted}.Place("run_1", 0, at),
		wire.Draft{Type: wire.EventOutputChunk, Trust: wire.Untrusted}.Place("run_1", 1, at),
	})
	step.Pos = 12
	wake := frame.New(run, subject.Wake, step.Head(), nil)
	wake.Pos = 20
	end := frame.New(run, subject.End, wake.Head(), []wire.Event{wire.Draft{Type: wire.EventRunCompleted}.Place("run_1", 2, at)})
	end.Pos = 21
	return []*frame.Frame{start, step, wake, end}
}

// reparse encodes and parses a frame.
func reparse(t *testing.T, f *frame.Frame) *frame.Frame {
	t.Helper()
	h := f.Headers()
	got, err := frame.Parse(f.Run.Frame(f.Kind), func(k string) string { return h[k] }, f.Body)
	require.NoError(t, err)
	got.Pos = f.Pos
	return got
}

func TestFrame_SurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	for _, f := range chain(t) {
		got := reparse(t, f)
		require.Equal(t, f, got)
		require.NoError(t, got.Verify())
	}
}

func TestFrame_HeadersSupportFilters(t *testing.T) {
	t.Parallel()
	h := chain(t)[1].Headers()
	require.Equal(t, "0", h[frame.HeaderFirst])
	require.Equal(t, "1", h[frame.HeaderLast])
	require.Equal(t, "run.started,output.chunk", h[frame.HeaderTypes])
	require.Equal(t, "untrusted", h[frame.HeaderTrust], "one untrusted event makes the frame untrusted")
}

func TestHead_KeepsTheSequenceOverEmptyFrames(t *testing.T) {
	t.Parallel()
	frames := chain(t)
	require.Equal(t, 0, frames[0].Head().Next, "a start frame holds no event")
	require.Equal(t, 2, frames[1].Head().Next)
	require.Equal(t, 2, frames[2].Head().Next, "a wake frame holds no event")
	require.Equal(t, 3, frames[3].Head().Next)
}

func TestVerifyChain_AcceptsAWholeLog(t *testing.T) {
	t.Parallel()
	require.NoError(t, frame.VerifyChain(chain(t)))
}

func TestVerifyChain_FindsEveryKindOfDamage(t *testing.T) {
	t.Parallel()
	cases := map[string]func([]*frame.Frame) []*frame.Frame{
		"a flipped bit in a body":  func(fs []*frame.Frame) []*frame.Frame { fs[1].Body[5] ^= 1; return fs },
		"a changed sequence":       func(fs []*frame.Frame) []*frame.Frame { fs[1].Last++; return fs },
		"a changed trust":          func(fs []*frame.Frame) []*frame.Frame { fs[1].Trust = wire.Trusted; return fs },
		"another writer":           func(fs []*frame.Frame) []*frame.Frame { fs[1].Writer = "w"; return fs },
		"another run's subject":    func(fs []*frame.Frame) []*frame.Frame { fs[1].Run.RunID = "run_2"; return fs },
		"a missing frame":          func(fs []*frame.Frame) []*frame.Frame { return append(fs[:1:1], fs[2:]...) },
		"two frames swapped":       func(fs []*frame.Frame) []*frame.Frame { fs[1], fs[2] = fs[2], fs[1]; return fs },
		"a frame twice":            func(fs []*frame.Frame) []*frame.Frame { return append(fs[:2:2], fs[1:]...) },
		"the beginning is missing": func(fs []*frame.Frame) []*frame.Frame { return fs[1:] },
	}
	for name, damage := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorIs(t, frame.VerifyChain(damage(chain(t))), frame.ErrDamaged)
		})
	}
}

func TestParse_RejectsInvalidFrames(t *testing.T) {
	t.Parallel()
	good := map[string]string{frame.HeaderFirst: "0", frame.HeaderLast: "0"}
	cases := map[string]struct {
		subject string
		headers map[string]string
	}{
		"foreign subject":  {"foo.bar", good},
		"unknown kind":     {"openwop.events.a.b.c.stop", good},
		"wildcard token":   {"openwop.events.a.*.c.step", good},
		"no headers":       {run.Frame(subject.Step), nil},
		"negative first":   {run.Frame(subject.Step), map[string]string{frame.HeaderFirst: "-1", frame.HeaderLast: "0"}},
		"last before last": {run.Frame(subject.Step), map[string]string{frame.HeaderFirst: "5", frame.HeaderLast: "3"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := frame.Parse(c.subject, func(k string) string { return c.headers[k] }, []byte("[]"))
			require.Error(t, err)
		})
	}
}

// Two racing dispatchers may write the same events in the same millisecond.
func TestBy_DistinguishesEqualFramesOfTwoWriters(t *testing.T) {
	t.Parallel()
	one, two := chain(t)[1].By("w1"), chain(t)[1].By("w2")
	require.NotEqual(t, one.Hash, two.Hash)
	require.NoError(t, reparse(t, one).Verify())
	require.Equal(t, "w1", reparse(t, one).Writer)
}

func TestRecord_IsInStartFramesOnly(t *testing.T) {
	t.Parallel()
	frames := chain(t)
	rec, err := frames[0].Record()
	require.NoError(t, err)
	require.Equal(t, "acme", rec.Owner.Tenant)
	_, err = frames[1].Record()
	require.Error(t, err)
	events, err := frames[0].Events()
	require.NoError(t, err)
	require.Empty(t, events)
}

func FuzzParse(f *testing.F) {
	f.Add("openwop.events.a.b.c.step", "0", "1", "run.started", "[]")
	f.Fuzz(func(t *testing.T, subj, first, last, types, body string) {
		h := map[string]string{frame.HeaderFirst: first, frame.HeaderLast: last, frame.HeaderTypes: types}
		got, err := frame.Parse(subj, func(k string) string { return h[k] }, []byte(body))
		if err != nil {
			return
		}
		require.Equal(t, subj, got.Run.Frame(got.Kind))
		require.GreaterOrEqual(t, got.Last, got.First-1)
	})
}

func BenchmarkNew(b *testing.B) {
	at := time.Unix(1_700_000_000, 0)
	e := wire.Draft{Type: wire.EventNodeStarted, NodeID: "n", Payload: json.RawMessage(`{"nodeId":"n"}`)}.Place("run_1", 0, at)
	events := []wire.Event{e, e, e, e}
	b.ReportAllocs()
	for b.Loop() {
		frame.New(run, subject.End, frame.Head{}, events)
	}
}
