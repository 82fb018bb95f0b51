package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestL4_ApprovalsAreAnswered(t *testing.T) {
	t.Parallel()
	u := member(t)
	for _, tc := range []struct {
		name string
		args []string
		in   string
		end  int // of the run
	}{
		{"accept", []string{"--action", "accept"}, "", 0},
		{"reject", []string{"--action", "reject", "--feedback", "no"}, "", 1},
		{"refine", []string{"--action", "refine", "--feedback", "shorter"}, "", 0},
		{"stdin", []string{"--value", "-"}, `{"action":"accept"}`, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			u := u
			u.t = t
			id := u.waiting("approve")
			r := u.typing(tc.in).ok(append([]string{"interrupt", "answer", id, "gate"}, tc.args...)...)
			require.Contains(t, r.out, "answered")
			require.Equal(t, tc.end, u.run("run", "wait", id).status)
			again := u.run("interrupt", "answer", id, "gate", "--action", "accept")
			require.Equal(t, 6, again.status, "it was answered before: %s", again.err)
		})
	}
}

func TestL4_AnUnknownActionNamesTheOffered(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.waiting("approve")
	r := u.run("interrupt", "answer", id, "gate", "--action", "burn")
	require.Equal(t, 6, r.status)
	require.Contains(t, r.err, "accept, reject, refine")
	require.Equal(t, 6, u.run("interrupt", "answer", id, "gate", "--value", `{"action":"burn"}`).status, "the host rejects it, too")
	require.Equal(t, 2, u.run("interrupt", "answer", id, "gate").status)
	require.Equal(t, 2, u.run("interrupt", "answer", id, "gate", "--action", "refine").status, "refine needs feedback")
	require.Equal(t, 5, u.run("interrupt", "answer", id, "ghost", "--action", "accept").status)
	require.Equal(t, 4, at(t, shared.Host(t).HTTP, readerKey).run("interrupt", "answer", id, "gate", "--action", "accept").status)
	require.Equal(t, 3, u.run("run", "wait", id).status, "the run waits on")
}

func TestL4_ClarificationsAreAnsweredByQuestion(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.waiting("clarify")
	shown := u.ok("interrupt", "show", id).out
	require.Contains(t, shown, "q1: Which color?")
	require.Contains(t, shown, `"blue"`)
	require.Contains(t, shown, "interrupt answer "+id+" ask --answer q1=… --answer q2=…")
	require.Equal(t, 6, u.run("interrupt", "answer", id, "--answer", "q1=green", "--answer", "q2=2").status, "green is not a choice")
	u.ok("interrupt", "answer", id, "--answer", "q1=blue", "--answer", "q2=2")
	r := u.ok("run", "wait", id, "--query", ".outputs")
	require.Contains(t, r.out, "blue")
}

func TestL4_OpenQuestionsAreListed(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.waiting("approve-two")
	list := u.ok("interrupt", "list", "--workflow", "approve-two").out
	require.Contains(t, list, id)
	require.Contains(t, list, "Both of you? (accept, reject)")
	first := u.ok("interrupt", "answer", id, "--action", "accept", "--voter", "ann")
	require.Contains(t, first.out, "waiting-approval", "one of two")
	u.ok("interrupt", "answer", id, "--action", "accept", "--voter", "bob")
	require.Equal(t, 0, u.run("run", "wait", id).status)
	require.Equal(t, 5, u.run("interrupt", "show", id).status, "no open interrupt")
}

// A node's id can be any text, including path separators.
func TestL4_ANodeMayBeCalledAnything(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.waiting("approve-odd")
	u.ok("interrupt", "answer", id, "gate/one:first", "--action", "accept")
	require.Equal(t, 0, u.run("run", "wait", id).status)
}

// A form that a model drew takes an answer for each field: text as text, a box as true or false.
func TestL4_FormsAreFilledIn(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.waiting("form")
	shown := u.ok("interrupt", "show", id).out
	require.Contains(t, shown, "form (text from the workflow or a model):\n  A refund\n  why: Why? (required)\n  twice: Twice\n")
	require.Contains(t, shown, "interrupt answer "+id+" form --answer why=…")
	require.Equal(t, 6, u.run("interrupt", "answer", id, "--answer", "ghost=1").status)
	u.ok("interrupt", "answer", id, "--answer", "why=42", "--answer", "twice=true")
	r := u.ok("run", "events", id, "--type", "node.resumed", "--query", ".events[0].payload.resumeValue", "-o", "json")
	require.JSONEq(t, `{"why":"42","twice":true}`, r.out)
}

// The questions of a model can be declined; those of a gate cannot.
func TestL4_AModelsQuestionsAreDeclined(t *testing.T) {
	t.Parallel()
	u := member(t)
	answers(t, "asked", `{"type":"clarification.request","payload":{"questions":[{"id":"q1","question":"Which?"}]}}`, `{"type":"error","payload":{"code":"x","message":"not without an answer"}}`)
	id := u.waiting("asked")
	require.Contains(t, u.ok("interrupt", "show", id).out, "decline: waybill interrupt answer "+id+" asked --decline")
	require.Equal(t, 2, u.run("interrupt", "answer", id, "--reason", "x").status, "a reason is for --decline")
	require.Equal(t, 2, u.run("interrupt", "answer", id, "--decline", "--answer", "q1=x").status)
	require.Contains(t, u.ok("interrupt", "answer", id, "--decline", "--reason", "not known").out, "declined; run "+id)
	u.ok("run", "wait", id)
	require.Contains(t, u.ok("run", "events", id, "--type", "clarification.resolved").out, "declined by")

	id = u.waiting("clarify")
	shown := u.ok("interrupt", "show", id).out
	require.NotContains(t, shown, "--decline")
	r := u.run("interrupt", "answer", id, "--decline")
	require.Equal(t, 6, r.status)
	require.Contains(t, r.err, "only the questions of a model can be declined")
}
