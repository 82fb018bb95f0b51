package models

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A model that is held to a schema can answer with any kind that its node accepts (RFC 0031 §A,
// OpenWOP envelope contract §3.1).
func TestTurn_OffersTheKindsThatTheNodeAccepts(t *testing.T) {
	t.Parallel()
	client(t, apiKey) // load the schemas before the parallel tests
	for _, v := range vendors {
		for name, tc := range map[string]struct {
			answer string
			ends   string
			output string
		}{
			"the kind": {
				`{"envelopes":[{"type":"vendor.acme.answer","payload":{"answer":42,"note":null},"meta":{"rendering":{"display":"card","title":"Found","lang":null}}}]}`,
				"run.completed", `"output":{"answer":42,"note":null}`,
			},
			"its payload alone": {good, "run.completed", `"output":{"answer":42,"note":null}`},
			"an error": {
				`{"envelopes":[{"type":"error","payload":{"code":"ambiguous_intent","message":"Two orders match."},"meta":null}]}`,
				"run.completed", `"type":"error"`,
			},
		} {
			t.Run(v.id+"/"+name, func(t *testing.T) {
				t.Parallel()
				id := unsafeInName.ReplaceAllString(t.Name(), "-")
				v.desk.put(id, answer{text: tc.answer, in: 100, out: 10})
				c := client(t, apiKey)
				events := finish(t, c, start(t, c, asks("envelope-streamed", id, v, v.seeing, "")))
				require.Equal(t, tc.ends, events[len(events)-1].Type, "%s", dump(events))
				require.Contains(t, string(of(events, completed)[0].Payload), tc.output)
				calls := v.desk.of(id)
				require.Len(t, calls, 1)
				r, err := v.read(calls[0].body)
				require.NoError(t, err)
				for _, kind := range []string{"vendor.acme.answer", "clarification.request", "schema.request", "error"} {
					require.Contains(t, string(r.schema), `"`+kind+`"`, "the schema offers the kind")
					require.Contains(t, r.text, kind, "the instruction names the kind")
				}
			})
		}
	}
}

// A strict model asks a question and gets the answer.
func TestTurn_AModelHeldToASchemaAsksAQuestion(t *testing.T) {
	t.Parallel()
	client(t, apiKey)
	for _, v := range vendors {
		t.Run(v.id, func(t *testing.T) {
			t.Parallel()
			id := unsafeInName.ReplaceAllString(t.Name(), "-")
			v.desk.put(id,
				answer{text: `{"envelopes":[{"type":"clarification.request","payload":{"questions":[{"id":"q","question":"Which order?"}]}}]}`, in: 100, out: 10},
				answer{text: `{"envelopes":[{"type":"vendor.acme.answer","payload":{"answer":42,"note":null}}]}`, in: 120, out: 10})
			c := client(t, apiKey)
			run := start(t, c, asks("envelope-streamed", id, v, v.seeing, ""))
			require.Eventually(t, func() bool {
				a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+run, "")
				var snap struct{ Status string }
				return err == nil && a.JSON(&snap) == nil && snap.Status == "waiting-input"
			}, 30*time.Second, 20*time.Millisecond)
			a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+run+"/interrupts/ask", `{"resumeValue":{"answers":[{"id":"q","answer":"the second"}]}}`)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			events := finish(t, c, run)
			require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
			calls := v.desk.of(id)
			require.Len(t, calls, 2)
			second, err := v.read(calls[1].body)
			require.NoError(t, err)
			require.Contains(t, second.text, "the second")
		})
	}
}
