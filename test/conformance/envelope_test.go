package conformance

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// program scripts the answers to a node's next model calls.
func program(t *testing.T, c *harness.Client, nodeID string, answers ...string) {
	t.Helper()
	type entry struct {
		Content string `json:"content"`
	}
	var script []entry
	for _, a := range answers {
		script = append(script, entry{a})
	}
	b, err := json.Marshal(map[string]any{"nodeId": nodeID, "program": script})
	require.NoError(t, err)
	a := do(t, c, http.MethodPost, seams+"test/mock-ai/program", string(b))
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
}

// The model's answers in one run, and the events that the run must show.
func TestEnvelopes_OfARealRun(t *testing.T) {
	c := client(t, testKey)
	const whole = `{"type":"vendor.waybill.ticket.triage","payload":` + triage + `}`
	for name, tc := range map[string]struct {
		answers []string
		status  string
		events  []string // between the node's start and its end
		code    string
	}{
		"a payload": {
			[]string{triage},
			"completed",
			[]string{"provider.usage", "artifact.created"},
			"",
		},
		"a schema is requested and returned": {
			[]string{`{"type":"schema.request","payload":{"envelopeType":"vendor.waybill.ticket.triage"}}`, triage},
			"completed",
			[]string{"provider.usage", "log.appended", "provider.usage", "artifact.created"},
			"",
		},
		"the schema of an unknown kind": {
			[]string{`{"type":"schema.request","payload":{"envelopeType":"vendor.acme.ghost"}}`, whole},
			"completed",
			[]string{"provider.usage", "envelope.retry.attempted", "provider.usage", "artifact.created"},
			"",
		},
		"two kinds in one turn": {
			[]string{`[` + whole + `,{"type":"error","payload":{"code":"ambiguous_intent","message":"two mails in one"}}]`},
			"completed",
			[]string{"provider.usage", "artifact.created", "log.appended"},
			"",
		},
		"a member twice": {
			[]string{`{"type":"vendor.waybill.ticket.triage","payload":{"a":1,"a":2}}`, triage},
			"completed",
			[]string{"provider.usage", "envelope.retry.attempted", "provider.usage", "artifact.created"},
			"",
		},
		"more than a turn may hold": {
			[]string{`[` + whole + `,` + whole + `,` + whole + `,` + whole + `,` + whole + `,` + whole + `]`},
			"failed",
			[]string{
				"provider.usage", "artifact.created", "artifact.created", "artifact.created", "artifact.created", "artifact.created", "cap.breached",
			},
			"cap_breached",
		},
	} {
		t.Run(name, func(t *testing.T) { // sequential: the script belongs to the node
			program(t, c, "asking-node", tc.answers...)
			id, events := run(t, c, `{"workflowId":"asks"}`)
			snap := read(t, c, id)
			require.Equal(t, tc.status, snap.Status, "%v", names(events))
			got := names(events)
			from := slices.Index(got, "node.started") + 1
			to := slices.IndexFunc(got, func(n string) bool { return n == "node.completed" || n == "node.failed" })
			shown := slices.DeleteFunc(slices.Clone(got[from:to]), func(n string) bool { return n == "output.chunk" })
			require.Equal(t, tc.events, shown)
			if tc.code != "" {
				require.Equal(t, tc.code, snap.Error.Code)
			}
		})
	}
}
