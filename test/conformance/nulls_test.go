package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// OpenWOP envelope contract §5, §20: a null that a model writes for an absent member is in no output,
// event or expression, so a workflow branches the same for a model with a strict schema and without.
func TestNull_OfAModelIsAbsence(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	const schema = `{"type":"object","required":["team"],"properties":{"reasoning":{"type":["string","null"]},"team":{"type":"string"},"order":{"type":"integer"},"nick":{"type":["string","null"]}}}`
	for id, tc := range map[string]struct{ typ, config, absent, null, skipped string }{
		"null-value": {
			"core.ai.structuredOutput", `"outputSchema":` + schema,
			`{"team":"a","nick":null}`, `{"reasoning":null,"team":"a","order":null,"nick":null}`, "there",
		},
		"null-envelope": {
			"core.ai.callPrompt", `"envelopeType":"vendor.waybill.ticket.triage"`,
			strings.Replace(triage, `"reasoning":"charged twice",`, "", 1), strings.Replace(triage, `"charged twice"`, "null", 1),
			"absent", // the kind requires reasoning, so it is null in both cases
		},
		"null-error": {
			"core.ai.callPrompt", `"envelopeType":"vendor.waybill.ticket.triage"`,
			`{"type":"error","payload":{"code":"x","message":"m"}}`,
			`{"type":"error","schemaVersion":null,"meta":null,"payload":{"reasoning":null,"code":"x","message":"m","details":null}}`, "there",
		},
	} {
		t.Run(id, func(t *testing.T) {
			const found = `has(outputs.output.reasoning) || has(outputs.output.order) || has(outputs.output.details)`
			a := do(t, c, http.MethodPost, "/v1/workflows", definition(id,
				node(id, tc.typ, `{"provider":"mock","model":"mock-mini","prompt":"hi","expectsStreaming":false,`+tc.config+`}`, "{}")+","+
					node("there", "core.noop", "{}", "{}")+","+node("absent", "core.noop", "{}", "{}"),
				when(id, "there", fmt.Sprintf(`{"expression":%q}`, found))+","+when(id, "absent", fmt.Sprintf(`{"expression":%q}`, "!("+found+")")), "", ""))
			require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
			for _, said := range []string{tc.absent, tc.null} {
				program(t, c, id, said)
				_, events := run(t, c, `{"workflowId":"`+id+`"}`)
				list := strings.Join(names(events), " ")
				require.NotContains(t, list, "envelope.retry.attempted")
				var skipped []string
				for _, e := range events {
					if e.Type == "node.skipped" {
						skipped = append(skipped, e.NodeID)
					}
					require.NotContains(t, string(e.Payload), `"order":null`)
					require.NotContains(t, string(e.Payload), `"details":null`)
				}
				require.Equal(t, []string{tc.skipped}, skipped, said)
			}
		})
	}
}
