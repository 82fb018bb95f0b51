package models

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// variant is a way to run a case.
type variant struct {
	v     *vendor
	model string
	shape string // value or envelope
	mode  string // streamed or whole
	tool  bool
}

var unsafeInName = regexp.MustCompile(`[^a-z0-9]+`)

// OpenWOP envelope contract §14.1, §14.2, §14.5, §15 and §19.1: every vendor, streamed
// or not, for an envelope or a value.
func TestMatrix_EveryVendorEveryWayEveryOutcome(t *testing.T) {
	t.Parallel()
	client(t, apiKey) // load the schemas before the parallel tests
	for _, v := range vendors {
		for _, r := range rows(v) {
			if r.limited() {
				continue
			}
			for shape := range shapes {
				for _, mode := range []string{"streamed", "whole"} {
					runCase(t, r, variant{v, v.seeing, shape, mode, false}, true)
				}
			}
			if slices.Contains([]string{"success at once", "invalid, then valid", "truncated, then valid", "refused"}, r.name) {
				runCase(t, r, variant{v, v.blind, "value", "streamed", true}, true)
			}
		}
	}
}

// A refusal for lack of capacity holds all calls of its model and key, so these rows run alone.
func TestMatrix_EveryVendorWithoutCapacity(t *testing.T) {
	t.Parallel()
	client(t, apiKey)
	for _, v := range vendors {
		t.Run(v.id, func(t *testing.T) {
			t.Parallel()
			for _, r := range rows(v) {
				if !r.limited() {
					continue
				}
				runCase(t, r, variant{v, v.seeing, "envelope", "streamed", false}, false)
				runCase(t, r, variant{v, v.seeing, "value", "whole", false}, false)
			}
		})
	}
}

// runCase runs a case as a subtest. A parallel one starts its run immediately and checks it after
// all others have started theirs.
func runCase(t *testing.T, r row, w variant, parallel bool) {
	t.Helper()
	name := strings.Join([]string{w.v.id, w.shape, w.mode, r.name}, "/")
	if w.tool {
		name += " as a tool"
	}
	t.Run(name, func(t *testing.T) {
		id := unsafeInName.ReplaceAllString(strings.ToLower(name), "-")
		w.v.desk.put(id, r.answers...)
		c := client(t, apiKey)
		runID := start(t, c, asks(w.shape+"-"+w.mode, id, w.v, w.model, ""))
		if parallel {
			t.Parallel() // start all runs before checking the first
		}
		events := finish(t, c, runID)
		checkOrder(t, r, w, events)
		checkPayloads(t, r, w, events)
		checkUsage(t, r, w, events)
		checkEnd(t, c, r, runID, events)
		checkSecrecy(t, w, events)
		checkChunks(t, r, w, events)
		checkCalls(t, r, w, w.v.desk.of(id))
	})
}

func checkOrder(t *testing.T, r row, w variant, events []harness.Event) {
	t.Helper()
	want := append([]string{"run.started", started}, r.events...)
	if r.code == "" {
		want = append(want, "run.completed")
	} else {
		want = append(want, "run.failed")
	}
	if w.shape == "value" {
		want = slices.DeleteFunc(want, func(e string) bool { return e == artifact })
	}
	require.Equal(t, want, typesBut(events, chunk), "%s", dump(events))
	for i, e := range events {
		require.Equal(t, i, e.Sequence)
	}
}

// typesBut lists the types of the events, without one.
func typesBut(events []harness.Event, but string) (out []string) {
	for _, e := range events {
		if e.Type != but {
			out = append(out, e.Type)
		}
	}
	return out
}

func dump(events []harness.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Type + " " + string(e.Payload) + "\n")
	}
	return b.String()
}

// of returns the events of a type.
func of(events []harness.Event, typ string) (out []harness.Event) {
	for _, e := range events {
		if e.Type == typ {
			out = append(out, e)
		}
	}
	return out
}

// checkPayloads checks the members that the events must have. The published schemas check the rest.
func checkPayloads(t *testing.T, r row, w variant, events []harness.Event) {
	t.Helper()
	for typ, want := range r.payloads {
		got := of(events, typ)
		require.Len(t, got, len(want), typ)
		for i := range want {
			requireHas(t, want[i], got[i].Payload)
			if typ == truncated || typ == refusal {
				requireHas(t, `{"provider":"`+w.v.id+`","model":"`+w.model+`"}`, got[i].Payload)
			}
		}
	}
}

// requireHas checks that a document contains the required members.
func requireHas(t *testing.T, want string, got []byte) {
	t.Helper()
	var w, g any
	require.NoError(t, json.Unmarshal([]byte(want), &w))
	require.NoError(t, json.Unmarshal(got, &g))
	require.True(t, has(w, g), "want %s in %s", want, got)
}

func has(want, got any) bool {
	w, isObject := want.(map[string]any)
	if !isObject {
		return want == got
	}
	g, _ := got.(map[string]any)
	for name, v := range w {
		if _, there := g[name]; !there || !has(v, g[name]) {
			return false
		}
	}
	return true
}

// checkUsage expects one provider.usage per answered call, with the vendor's counts and their cost.
func checkUsage(t *testing.T, r row, w variant, events []harness.Event) {
	t.Helper()
	got := of(events, usage)
	i := 0
	for _, a := range r.answers {
		if a.status != 0 || a.end != whole {
			continue // without an answer there are no counts
		}
		require.Less(t, i, len(got))
		var u struct {
			Provider, Model, NodeID, Currency string
			InputTokens, OutputTokens         int
			CostEstimateUsd                   *float64
		}
		require.NoError(t, json.Unmarshal(got[i].Payload, &u))
		require.Equal(t, []string{w.v.id, w.model, "ask", "USD"}, []string{u.Provider, u.Model, u.NodeID, u.Currency})
		require.Equal(t, []int{a.in, a.out}, []int{u.InputTokens, u.OutputTokens}, "must be verbatim from the vendor")
		require.NotNil(t, u.CostEstimateUsd)
		require.InDelta(t, float64(a.in*inputPrice+a.out*outputPrice)/1e6, *u.CostEstimateUsd, 1e-9)
		i++
	}
	require.Len(t, got, i)
}

func checkEnd(t *testing.T, c *harness.Client, r row, runID string, events []harness.Event) {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
	require.NoError(t, err)
	var snap struct {
		Status string
		Error  *struct{ Code, Message string }
	}
	require.NoError(t, a.JSON(&snap))
	if r.code == "" {
		require.Equal(t, "completed", snap.Status)
		require.Contains(t, string(of(events, completed)[0].Payload), `"answer":42`)
		return
	}
	require.Equal(t, "failed", snap.Status)
	require.Equal(t, r.code, snap.Error.Code)
	last := r.answers[len(r.answers)-1]
	if last.status != 0 || last.end == failing {
		require.Contains(t, snap.Error.Message, `; the server says: "`+serverMessage+`"`)
	}
	requireHas(t, `{"nodeId":"ask","error":{"code":"`+r.code+`"}}`, of(events, failed)[0].Payload)
	requireHas(t, `{"error":{"code":"`+r.code+`"}}`, events[len(events)-1].Payload)
}

// checkSecrecy checks that the vendor's words appear only in the streamed answer and in the event
// of a refusal.
func checkSecrecy(t *testing.T, w variant, events []harness.Event) {
	t.Helper()
	for _, e := range events {
		if e.Type != chunk && e.Type != refusal {
			require.NotContains(t, string(e.Raw), "xyzzy", e.Type)
		}
		require.NotContains(t, string(e.Raw), w.v.key)
		require.NotContains(t, string(e.Raw), w.v.url, "the server's address must not appear")
	}
}

// checkChunks compares the streamed text with the model's answer, call by call.
func checkChunks(t *testing.T, r row, w variant, events []harness.Event) {
	t.Helper()
	if w.mode == "whole" {
		require.Empty(t, of(events, chunk))
		return
	}
	var shown []string
	text := ""
	for _, e := range events {
		switch e.Type {
		case chunk:
			var p struct{ Chunk string }
			require.NoError(t, json.Unmarshal(e.Payload, &p))
			text += p.Chunk
		case usage, again, failed:
			if e.Type == usage || text != "" {
				shown, text = append(shown, text), ""
			}
		}
	}
	i := 0
	for _, a := range r.answers {
		switch {
		case a.status != 0:
			continue
		case a.end != whole:
			if strings.HasPrefix(a.text, shown[i]) {
				i++ // part of it was streamed
			}
			continue
		}
		require.Less(t, i, len(shown), "%q", shown)
		if a.stop != refused {
			want := a.text
			if cut := a.out * 4; a.out >= budget && len(want) > cut {
				want = want[:cut]
				if w.tool && w.v.id == "gemini" {
					want = "" // half a call is not shown
				}
			}
			require.Equal(t, want, shown[i])
		}
		i++
	}
	require.Len(t, shown, i, "%q", shown)
}

// checkCalls compares the vendor's requests with the truth table. The strict schema is in every
// request. After a truncation only the budget grows. Otherwise a correction is added at the same
// budget. The wrong answer is never quoted.
func checkCalls(t *testing.T, r row, w variant, calls []call) {
	t.Helper()
	require.Len(t, calls, len(r.answers), "number of calls")
	first, err := w.v.read(calls[0].body)
	require.NoError(t, err)
	require.Equal(t, budget, first.budget)
	for i, made := range calls {
		a, err := w.v.read(made.body)
		require.NoError(t, err)
		require.Equal(t, w.v.key, w.v.keyOf(made.header))
		require.Contains(t, string(a.schema), `"answer"`)
		require.JSONEq(t, string(first.schema), string(a.schema), "call %d", i)
		require.Equal(t, w.tool, a.tool)
		want := 1
		if r.budgets != nil {
			want = r.budgets[i]
		}
		require.Equal(t, want*budget, a.budget, "call %d", i)
		if r.silent {
			require.Equal(t, first.text, a.text, "the prompt must be unchanged")
		}
		if !strings.HasPrefix(r.name, "prose fallback") { // the prose fallback quotes the answer, fenced
			require.NotContains(t, string(made.body), "xyzzy", "the wrong answer must not be quoted")
		}
		if i > 0 && strings.HasPrefix(r.name, "invalid") {
			require.Greater(t, len(a.text), len(first.text))
			require.Contains(t, a.text, "was not accepted")
		}
	}
}
