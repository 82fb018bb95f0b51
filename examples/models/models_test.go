package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/test/harness"
)

var update = flag.Bool("update", false, "update the logs in docs/models.md")

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

// docs is the page that shows the logs.
const docs = "../../docs/models.md"

// plays runs all cases on one host.
func plays(t *testing.T) map[string]played {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	s, err := open(t.Context(), options{bin: harness.Binary(t), dir: ".."}, t.TempDir())
	require.NoError(t, err)
	defer s.close()
	out := map[string]played{}
	for _, c := range cases {
		p, err := s.play(t.Context(), c)
		require.NoError(t, err, c.name)
		out[c.name] = p
	}
	return out
}

// sequences are the expected events: rows 3 and 4 of OpenWOP envelope contract §16.3, then the rows
// of §14.5.
var sequences = map[string]string{
	"substituted":  "run.started model.capability.substituted node.started provider.usage node.completed run.completed",
	"insufficient": "run.started model.capability.insufficient node.failed run.failed",
	"truncated":    "run.started node.started provider.usage envelope.truncated envelope.retry.attempted provider.usage node.completed run.completed",
	"corrected":    "run.started node.started provider.usage envelope.retry.attempted provider.usage node.completed run.completed",
	"refused":      "run.started node.started provider.usage envelope.refusal node.failed run.failed",
}

func TestModels(t *testing.T) { //nolint:tparallel // the parts check the same runs, one after the other
	t.Parallel()
	all := plays(t)
	require.Len(t, sequences, len(cases))
	for name, want := range sequences {
		require.Equal(t, want, strings.Join(typesOf(all[name]), " "), name)
	}
	for part, look := range map[string]func(*testing.T, map[string]played){
		"events satisfy the published schemas":             publishedSchemas,
		"substituted: the fallback is called and paid for": substituted,
		"insufficient: no model is called":                 insufficient,
		"truncated: only the budget changes":               truncated,
		"corrected: the violation and the same budget":     corrected,
		"refused: one call":                                refused,
		"the documentation shows these runs":               documented,
	} {
		t.Run(part, func(t *testing.T) { look(t, all) })
	}
}

func publishedSchemas(t *testing.T, all map[string]played) {
	s := harness.LoadSchemas(t)
	for name, p := range all {
		for _, e := range p.log {
			require.NoError(t, s.Event(e.raw), name)
		}
	}
}

// OpenWOP envelope contract §16.3, row 3: after a substitution the usage is the
// fallback's.
func substituted(t *testing.T, all map[string]played) {
	p := all["substituted"]
	require.Equal(t, map[string]any{
		"nodeId": "triage", "originalProvider": "house", "originalModel": "small-7b", "fallbackProvider": "anthropic", "fallbackModel": "claude-haiku-5-5",
		"missingCapabilities": []any{"structured-output"},
	}, p.log[1].Payload)
	require.Equal(t, "claude-haiku-5-5", p.log[3].Payload["model"])
	require.Len(t, p.vendorCalls, 1)
	require.Empty(t, p.house, "the incapable model is not called")
}

// OpenWOP envelope contract §16.3, row 4: no model is called, and the node does not start.
func insufficient(t *testing.T, all map[string]played) {
	p := all["insufficient"]
	require.Equal(t, map[string]any{
		"nodeId": "triage", "provider": "house", "model": "small-7b", "missingCapabilities": []any{"structured-output"}, "fallbackAttempted": false,
	}, p.log[1].Payload)
	require.Equal(t, "capability_not_provided", errorCode(p.log[2]))
	require.Empty(t, p.vendorCalls)
	require.Empty(t, p.house)
}

// OpenWOP envelope contract §14.2, §14.3: twice the budget, the same prompt.
func truncated(t *testing.T, all map[string]played) {
	p := all["truncated"]
	require.Equal(t, "truncation", p.log[4].Payload["reason"])
	require.NotContains(t, p.log[4].Payload, "previousError")
	first, second := requestOf(t, p, 0), requestOf(t, p, 1)
	require.Equal(t, 2*first.MaxTokens, second.MaxTokens)
	require.JSONEq(t, string(first.Messages), string(second.Messages), "a truncation retry adds nothing")
}

// OpenWOP envelope contract §14.2, §14.4: a correction without text of the answer, with the same
// budget.
func corrected(t *testing.T, all map[string]played) {
	p := all["corrected"]
	require.Equal(t, "schema-violation", p.log[3].Payload["reason"])
	first, second := requestOf(t, p, 0), requestOf(t, p, 1)
	require.Equal(t, first.MaxTokens, second.MaxTokens)
	var messages []struct{ Content json.RawMessage }
	require.NoError(t, json.Unmarshal(second.Messages, &messages))
	added := string(messages[len(messages)-1].Content)
	require.Contains(t, added, "/properties/orderNumber/pattern")
	require.NotContains(t, added, "Charged twice; wants", "no text of the answer")
}

// OpenWOP envelope contract §14.8: no layer retries, and the failure does not repeat the
// vendor's text.
func refused(t *testing.T, all map[string]played) {
	p := all["refused"]
	require.Len(t, p.vendorCalls, 1)
	require.Equal(t, declines, p.log[3].Payload["refusalText"])
	require.Equal(t, "envelope_refusal", errorCode(p.log[4]))
	require.NotContains(t, string(p.log[4].raw), declines)
}

// masks replace values that differ from run to run.
var masks = []struct {
	like *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\.\d{3}\b`), "hh:mm:ss.mmm"},
	{regexp.MustCompile(`\brun_[0-9a-z]+\b`), "run_…"},
}

func masked(s string) string {
	for _, m := range masks {
		s = m.like.ReplaceAllString(s, m.as)
	}
	return strings.TrimSpace(s)
}

// documented checks that the page shows each run once and completely. -update updates the page.
func documented(t *testing.T, all map[string]played) {
	page, err := os.ReadFile(docs)
	require.NoError(t, err)
	text := string(page)
	for _, c := range cases {
		var b bytes.Buffer
		require.NoError(t, all[c.name].print(&b))
		got := strings.TrimSpace(b.String())
		block := regexp.MustCompile(fmt.Sprintf("(?s)```text\n(%s: .*?)\n```", c.name))
		found := block.FindAllStringSubmatchIndex(text, -1)
		require.Len(t, found, 1, "%s must show the run %q once, as a text block", docs, c.name)
		from, to := found[0][2], found[0][3]
		switch same := masked(text[from:to]) == masked(got); {
		case !same && *update:
			text = text[:from] + got + text[to:]
		case !same:
			require.Equal(t, masked(got), masked(text[from:to]), "run go test ./examples/models -update")
		}
	}
	if text != string(page) {
		require.NoError(t, os.WriteFile(docs, []byte(text), 0o600))
	}
}

// A log without an expected event is an error, not a story with missing values.
func TestPrint_RejectsALogThatDiffers(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		var b bytes.Buffer
		p := played{scene: c, runID: "run_1", log: []event{{Type: "run.started"}, {Type: "run.completed"}}}
		require.ErrorContains(t, p.print(&b), "run run_1: unexpected log, without ", c.name)
		require.Empty(t, b.String())
	}
}

func TestLine_ShowsTheImportantMembers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ doc, want string }{
		{`{"type":"run.started","timestamp":"2026-01-02T03:04:05.006Z","payload":{"workflowId":"w"}}`, "  03:04:05.006  run.started\n"},
		{
			`{"type":"node.failed","nodeId":"n","timestamp":"2026-01-02T03:04:05Z","payload":{"error":{"code":"c","message":"model \"m\" is <gone>"},"attempts":3}}`,
			"  03:04:05.000  node.failed                    n\n                error.code=c error.message='model \"m\" is <gone>'\n",
		},
		{
			`{"type":"envelope.refusal","nodeId":"n","timestamp":"2026-01-02T03:04:05Z","payload":{"refusalText":null,"safetyCategory":"it's"}}`,
			"  03:04:05.000  envelope.refusal               n\n                safetyCategory=it's refusalText=null\n",
		},
	} {
		var e event
		require.NoError(t, read([]byte(tc.doc), &e))
		require.Equal(t, tc.want, e.line())
	}
}

func TestWithoutSettings_RemovesKeysAndSettings(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"PATH=/bin", "HOME=/h"}, withoutSettings([]string{
		"PATH=/bin", "ANTHROPIC_API_KEY=k", "WAYBILL_PROVIDER_ANTHROPIC_KEY_FILE=f", "HOME=/h", "OPENAI_API_KEY=k", "GEMINI_API_KEY=k", "WAYBILL_DEMO=true",
	}))
}

func TestBinary_ReportsHowToGetOne(t *testing.T) {
	t.Parallel()
	_, err := binary(t.Context(), filepath.Join(t.TempDir(), "none"), "")
	require.ErrorContains(t, err, "make build")
}

// Each workflow has the id of its file, and each case has a workflow.
func TestWorkflows_AreThoseOfTheCases(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("workflows/*.json")
	require.NoError(t, err)
	var ids, names []string
	for _, f := range files {
		doc, err := os.ReadFile(f)
		require.NoError(t, err)
		def, problems := workflow.Parse(doc)
		require.Empty(t, problems, f)
		require.Equal(t, def.ID+".json", filepath.Base(f))
		ids = append(ids, def.ID)
	}
	for _, c := range cases {
		names = append(names, c.name)
	}
	require.ElementsMatch(t, names, ids)
}

func typesOf(p played) []string {
	var out []string
	for _, e := range p.log {
		out = append(out, e.Type)
	}
	return out
}

func errorCode(e event) any {
	o, _ := e.Payload["error"].(map[string]any)
	return o["code"]
}

// requested is a request to the vendor.
type requested struct {
	MaxTokens int             `json:"max_tokens"`
	Messages  json.RawMessage `json:"messages"`
}

func requestOf(t *testing.T, p played, i int) (r requested) {
	t.Helper()
	require.Len(t, p.vendorCalls, 2)
	require.NoError(t, json.Unmarshal(p.vendorCalls[i].Body, &r))
	return r
}
