package runview_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/internal/publishedtest"
	"waybill.dev/waybill/services/gateway/runview"
)

// log is a run: its events and its state.
type log struct {
	id       string
	events   [][]byte
	snapshot string
}

// step is what one event does; values are few, so that two logs often agree.
type step struct {
	typ, node string
	value     int
}

func (s step) in(run string, seq int) []byte {
	env := fmt.Sprintf("env_%s%024x", run[4:8], seq)
	return fmt.Appendf(nil, `{"eventId":"ev_%s_%d","runId":%q,"sequence":%d,"type":%q,"nodeId":%q,"timestamp":"2026-01-01T00:00:%02dZ",`+
		`"payload":{"durationMs":%d,"runId":%q,"value":%d,"ref":{"envelopeId":%q,"of":"%s:x"},"expiresAt":"2026-01-01T00:00:%02dZ"}}`,
		run, seq, run, seq, s.typ, s.node, len(run), len(env)+seq+int(run[5]), run, s.value, env, run, int(run[6])%60)
}

var steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
	return step{
		rapid.SampledFrom([]string{"node.started", "node.completed"}).Draw(t, "type"),
		rapid.SampledFrom([]string{"n", "m"}).Draw(t, "node"), rapid.IntRange(0, 2).Draw(t, "value"),
	}
}), 0, 12)

const runA, runB = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", "run_bbbbbbbbbbbbbbbbbbbbbbbbbb"

func made(id string, steps []step) log {
	l := log{id: id, snapshot: fmt.Sprintf(`{"runId":%q,"status":"completed","variables":{"n":%d}}`, id, len(steps))}
	for i, s := range steps {
		l.events = append(l.events, s.in(id, i))
	}
	return l
}

func compare(a, b log) runview.DiffReport {
	c := runview.NewComparer(a.id, b.id)
	for i := range max(len(a.events), len(b.events)) {
		var x, y []byte
		if i < len(a.events) {
			x = a.events[i]
		}
		if i < len(b.events) {
			y = b.events[i]
		}
		if !c.Add(x, y) {
			break
		}
	}
	return c.Report([]byte(a.snapshot), []byte(b.snapshot), false)
}

func TestDiff_OfARunAndItselfOrItsTwinIsEmpty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := steps.Draw(t, "steps")
		for _, twin := range []log{made(runA, s), made(runB, s)} {
			r := compare(made(runA, s), twin)
			require.Nil(t, r.DivergedAtSeq)
			require.Empty(t, r.EventDiffs)
			require.Empty(t, r.StateDiff)
			require.False(t, r.Truncated)
		}
	})
}

func TestDiff_IsTheSameFromBothSides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sa, sb := steps.Draw(t, "a"), steps.Draw(t, "b")
		ab, ba := compare(made(runA, sa), made(runB, sb)), compare(made(runB, sb), made(runA, sa))
		count := func(r runview.DiffReport) map[runview.DiffOp]int {
			n := map[runview.DiffOp]int{}
			for _, d := range r.EventDiffs {
				n[d.Op]++
			}
			return n
		}
		n, m := count(ab), count(ba)
		require.Equal(t, n[runview.Added], m[runview.Removed])
		require.Equal(t, n[runview.Removed], m[runview.Added])
		require.Equal(t, n[runview.Changed], m[runview.Changed])
		require.Equal(t, ab.DivergedAtSeq == nil, len(ab.EventDiffs) == 0)
	})
}

// The difference of logs is no larger than the changes that make one of the other.
func TestDiff_OfARemovedEventIsThatEvent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := steps.Filter(func(s []step) bool { return len(s) > 0 }).Draw(t, "steps")
		i := rapid.IntRange(0, len(s)-1).Draw(t, "removed")
		shorter := slices.Delete(slices.Clone(s), i, i+1)
		r := compare(made(runA, s), made(runB, shorter))
		require.Len(t, r.EventDiffs, 1)
		require.Equal(t, runview.Removed, r.EventDiffs[0].Op)
		require.Contains(t, string(r.EventDiffs[0].AEvent), fmt.Sprintf(`"type":%q,"nodeId":%q`, s[i].typ, s[i].node))
	})
}

// piece is a chunk of the text of a node's model.
func piece(node, text string, last bool) string {
	return fmt.Sprintf(`{"type":"output.chunk","nodeId":%q,"payload":{"nodeId":%q,"chunk":%q,"isLast":%t}}`, node, node, text, last)
}

func docs(events ...string) (out [][]byte) {
	for _, e := range events {
		out = append(out, []byte(e))
	}
	return out
}

func TestDiff_IgnoresHowATextWasCutIntoChunks(t *testing.T) {
	t.Parallel()
	const done = `{"type":"node.completed","nodeId":"n","payload":{"v":1}}`
	one := log{id: runA, events: docs(piece("n", "Hello ", false), piece("m", "x", true), piece("n", "world", true), done)}
	other := log{id: runB, events: docs(piece("n", "He", false), piece("n", "llo world", false), piece("n", "", true), piece("m", "x", true), done)}
	require.Empty(t, compare(one, other).EventDiffs)
	require.Nil(t, compare(one, other).DivergedAtSeq)
}

func TestDiff_ReportsADifferentTextAsOneEvent(t *testing.T) {
	t.Parallel()
	const begun, done = `{"type":"node.started","nodeId":"n","payload":{}}`, `{"type":"node.completed","nodeId":"n","payload":{"v":1}}`
	a := log{id: runA, events: docs(begun, piece("n", "one ", false), piece("n", "two", true), done)}
	b := log{id: runB, events: docs(begun, piece("n", "one ", false), piece("n", "thr", false), piece("n", "ee", false), piece("n", "", true), done)}
	r := compare(a, b)
	require.Len(t, r.EventDiffs, 1)
	d := r.EventDiffs[0]
	require.Equal(t, runview.Changed, d.Op)
	require.EqualValues(t, 1, d.Seq)
	require.JSONEq(t, piece("n", "one two", true), string(d.AEvent))
	require.JSONEq(t, piece("n", "one three", true), string(d.BEvent))
}

func TestDiff_ComparesTwoAnswersOfANodeOneByOne(t *testing.T) {
	t.Parallel()
	a := log{id: runA, events: docs(piece("n", "one", true), piece("n", "two", true))}
	b := log{id: runB, events: docs(piece("n", "one", true), piece("n", "2", true))}
	r := compare(a, b)
	require.Len(t, r.EventDiffs, 1)
	require.EqualValues(t, 1, r.EventDiffs[0].Seq)
}

// A node that was repeated in one run adds its own events only, whatever ids follow.
func TestDiff_OfARepeatedNodeIsItsRepetition(t *testing.T) {
	t.Parallel()
	event := func(typ, node, payload string) string {
		return fmt.Sprintf(`{"type":%q,"nodeId":%q,"payload":%s}`, typ, node, payload)
	}
	made := func(node, id string) string {
		return event("artifact.created", node, `{"artifactId":"env_`+strings.Repeat(id, 24)+`"}`)
	}
	a := log{id: runA, events: docs(
		event("node.started", "n", `{"attempt":0}`), event("node.completed", "n", `{}`), made("m", "1"), made("o", "2"),
	)}
	b := log{id: runB, events: docs(
		event("node.started", "n", `{"attempt":0}`), made("n", "3"), event("node.retried", "n", `{}`),
		event("node.started", "n", `{"attempt":1}`), event("node.completed", "n", `{}`), made("o", "4"), made("m", "5"),
	)}
	r := compare(a, b)
	require.Len(t, r.EventDiffs, 3)
	for i, d := range r.EventDiffs {
		require.Equal(t, runview.Added, d.Op)
		require.EqualValues(t, i+1, d.Seq)
	}
}

// What follows the common part of a live run may still come.
func TestDiff_OfALiveRunIgnoresWhatMayFollow(t *testing.T) {
	t.Parallel()
	event := func(n int) []byte { return fmt.Appendf(nil, `{"type":"x","nodeId":"n%d","payload":{}}`, n) }
	c := runview.NewComparer(runA, runB)
	require.True(t, c.Add(event(1), event(1)))
	require.True(t, c.Add(event(2), event(3)))
	r := c.Report(nil, nil, true)
	require.Empty(t, r.EventDiffs)
	require.True(t, r.Truncated)
}

func TestDiff_OfOneMoreEventIsOneAdded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := steps.Draw(t, "steps")
		longer := append(append([]step(nil), s...), step{"run.completed", "", 0})
		r := compare(made(runA, s), made(runB, longer))
		require.Len(t, r.EventDiffs, 1)
		d := r.EventDiffs[0]
		require.Equal(t, runview.Added, d.Op)
		require.EqualValues(t, len(s), d.Seq)
		require.Nil(t, d.AEvent)
		require.NotNil(t, d.BEvent)
		require.Equal(t, d.Seq, *r.DivergedAtSeq)
	})
}

// The values of ids are ignored, but not which id is used where.
func TestDiff_DistinguishesAnotherReferenceFromAnotherID(t *testing.T) {
	t.Parallel()
	event := func(id string) []byte { return fmt.Appendf(nil, `{"type":"x","payload":{"ref":"env_%s"}}`, id) }
	one, two, three := strings.Repeat("1", 24), strings.Repeat("2", 24), strings.Repeat("3", 24)
	a := log{id: runA, events: [][]byte{event(one), event(two), event(one)}}
	same := log{id: runB, events: [][]byte{event(three), event(one), event(three)}}
	other := log{id: runB, events: [][]byte{event(three), event(one), event(one)}}
	require.Nil(t, compare(a, same).DivergedAtSeq)
	require.EqualValues(t, 2, *compare(a, other).DivergedAtSeq)
}

// Content of workflows and models is compared, including members with names of ids.
func TestDiff_ComparesContentWithAnyMemberNames(t *testing.T) {
	t.Parallel()
	for name, pair := range map[string][2]string{
		"a duration in an output": {`{"outputs":{"durationMs":1}}`, `{"outputs":{"durationMs":2}}`},
		"a time in an output": {
			`{"outputs":{"dueAt":"2026-01-01T00:00:00Z"}}`, `{"outputs":{"dueAt":"2027-01-01T00:00:00Z"}}`,
		},
		"a word that is no time": {`{"lookAt":"me"}`, `{"lookAt":"you"}`},
		"digits of a number":     {`{"n":9007199254740993}`, `{"n":9007199254740992}`},
		"null and nothing":       {`{"n":null}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			event := func(payload string) [][]byte { return [][]byte{[]byte(`{"type":"x","payload":` + payload + `}`)} }
			r := compare(log{id: runA, events: event(pair[0])}, log{id: runB, events: event(pair[1])})
			require.NotNil(t, r.DivergedAtSeq)
		})
	}
}

func TestDiff_OfStatesIsKeyedByPointer(t *testing.T) {
	t.Parallel()
	a := log{
		id:       runA,
		snapshot: `{"runId":"run_1","status":"completed","createdAt":"x","variables":{"n":1,"same":[1],"a/b":{"~":1}},"nodeStates":{"a":{"since":"1","status":"completed"}}}`,
	}
	b := log{
		id:       runB,
		snapshot: `{"runId":"run_2","status":"failed","createdAt":"y","variables":{"n":1.0,"same":[1],"a/b":{"~":null}},"nodeStates":{"a":{"since":"2","status":"failed"}},"error":{"code":"x"}}`,
	}
	got, err := json.Marshal(compare(a, b).StateDiff)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"/status":{"a":"completed","b":"failed"}, "/variables/n":{"a":1,"b":1.0}, "/variables/a~1b/~0":{"a":1,"b":null},
		"/nodeStates/a/status":{"a":"completed","b":"failed"}, "/error":{"b":{"code":"x"}}}`, string(got))
}

func TestDiff_IsBounded(t *testing.T) {
	t.Parallel()
	many := make([]step, 1500)
	r := compare(made(runA, nil), made(runB, many))
	require.Len(t, r.EventDiffs, 1000)
	require.True(t, r.Truncated)
	require.EqualValues(t, 0, *r.DivergedAtSeq)

	big := log{id: runB, events: [][]byte{bytes.Repeat([]byte(" "), 5<<20)}}
	r = compare(made(runA, nil), big)
	require.Empty(t, r.EventDiffs)
	require.True(t, r.Truncated)
	require.EqualValues(t, 0, *r.DivergedAtSeq, "the difference is reported")

	vars := func(n, size int) log {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint(i)] = strings.Repeat("x", size)
		}
		b, err := json.Marshal(map[string]any{"variables": m})
		require.NoError(t, err)
		return log{id: runB, snapshot: string(b)}
	}
	r = compare(log{id: runA, snapshot: `{"variables":{}}`}, vars(600, 1))
	require.Len(t, r.StateDiff, 500)
	require.True(t, r.Truncated)
	r = compare(log{id: runA, snapshot: `{"variables":{}}`}, vars(1, 10_000))
	require.JSONEq(t, `{"omittedBytes":10002}`, string(r.StateDiff["/variables/0"].B))
}

func TestDiff_ReportsAnOpenRun(t *testing.T) {
	t.Parallel()
	require.True(t, runview.NewComparer(runA, runB).Report([]byte(`{}`), []byte(`{}`), true).Truncated)
}

func TestDiff_SatisfiesThePublishedSchema(t *testing.T) {
	t.Parallel()
	s := publishedtest.Load(t).Need(t, "run-diff-response.schema.json")
	for _, r := range []runview.DiffReport{
		compare(made(runA, nil), made(runB, nil)), compare(made(runA, make([]step, 3)), made(runB, make([]step, 1))),
		compare(made(runA, nil), made(runB, make([]step, 1500))),
	} {
		b, err := json.Marshal(r)
		require.NoError(t, err)
		require.Contains(t, string(b), `"divergedAtSeq":`)
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		require.NoError(t, err)
		require.NoError(t, s.Validate(v))
	}
}

// Events that a replay copies name its source; both ids count as the same run.
func TestDiff_OfARunAndItsReplayIsEmpty(t *testing.T) {
	t.Parallel()
	event := func(id string) []byte {
		return fmt.Appendf(nil, `{"type":"x","payload":{"of":"%s:x","interrupt":{"runId":%q}}}`, id, id)
	}
	for name, c := range map[string]*runview.Comparer{
		"its source": runview.NewComparer(runB, runA).SetAncestors(nil, []string{runB}),
		"the replay": runview.NewComparer(runA, runB).SetAncestors([]string{runB}, nil),
	} {
		require.True(t, c.Add(event(runB), event(runB)), name)
		if name == "its source" { // new events of the replay have its id
			require.True(t, c.Add(event(runB), event(runA)), name)
		} else {
			require.True(t, c.Add(event(runA), event(runB)), name)
		}
		require.Nil(t, c.Report(nil, nil, false).DivergedAtSeq, name)
	}
	c := runview.NewComparer(runA, runB)
	c.Add(event(runA), event(runA))
	require.NotNil(t, c.Report(nil, nil, false).DivergedAtSeq, "it is no fork of it")
}

// A fork of a fork copies events with the id of the first fork.
func TestDiff_OfAForkOfAForkIsEmpty(t *testing.T) {
	t.Parallel()
	const runC = "run_cccccccccccccccccccccccccc"
	event := fmt.Appendf(nil, `{"type":"x","payload":{"key":"%s:gate:0"}}`, runA)
	for name, c := range map[string]*runview.Comparer{
		"with the first":  runview.NewComparer(runA, runC).SetAncestors(nil, []string{runB, runA}),
		"with its source": runview.NewComparer(runB, runC).SetAncestors([]string{runA}, []string{runB, runA}),
	} {
		require.True(t, c.Add(event, event), name)
		require.Nil(t, c.Report(nil, nil, false).DivergedAtSeq, name)
	}
}

// A divergence of a replay is reported, and later events are compared with the source's.
func TestDiff_IsNotShiftedByADivergence(t *testing.T) {
	t.Parallel()
	event := func(typ string, v int) []byte { return fmt.Appendf(nil, `{"type":%q,"payload":{"v":%d}}`, typ, v) }
	source := log{id: runA, events: [][]byte{event("x", 0), event("x", 1), event("x", 2), event("x", 3)}}
	replay := log{
		id:     runB,
		events: [][]byte{event("x", 0), event("replay.diverged", 1), event("x", 9), event("x", 2), event("x", 3)},
	}
	for _, r := range []runview.DiffReport{compare(source, replay), compare(replay, source)} {
		require.Len(t, r.EventDiffs, 2)
		require.EqualValues(t, 1, *r.DivergedAtSeq)
		require.EqualValues(t, 1, r.EventDiffs[0].Seq)
		require.Equal(t, runview.Changed, r.EventDiffs[1].Op)
	}
	require.Equal(t, runview.Added, compare(source, replay).EventDiffs[0].Op)
	require.Equal(t, runview.Removed, compare(replay, source).EventDiffs[0].Op)
}
