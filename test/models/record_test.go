package models

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// recorded is what readers of a run see of a model call.
type recorded struct {
	spans map[string]map[string]any
	cost  struct {
		Total, Retries struct{ ReasoningTokens *int }
		Calls          []struct{ ReasoningTokens *int }
	}
}

// readRecord reads the debug bundle and the view of a run.
func readRecord(t *testing.T, c *harness.Client, run string) recorded {
	t.Helper()
	out := recorded{spans: map[string]map[string]any{}}
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+run+"/debug-bundle", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var bundle struct {
		Spans []struct {
			Name       string
			Attributes map[string]any
		}
	}
	require.NoError(t, a.JSON(&bundle))
	for _, s := range bundle.Spans {
		out.spans[s.Name] = s.Attributes
	}
	a, err = c.Do(t.Context(), http.MethodGet, "/v1/runs/"+run+":view", "")
	require.NoError(t, err)
	var view struct{ Cost json.RawMessage }
	require.NoError(t, a.JSON(&view))
	require.NoError(t, json.Unmarshal(view.Cost, &out.cost))
	return out
}

// Tokens of thoughts are recorded for each vendor that reports them, in all places, and a replay repeats
// them. Unknown ones are not 0.
func TestRecord_HasTheTokensOfThoughts(t *testing.T) {
	needsHost(t)
	c := client(t, apiKey)
	for _, v := range vendors {
		for name, thoughts := range map[string]int{"some": 7, "none": 0} {
			for _, shape := range []string{"envelope-whole", "value-whole", "envelope-streamed"} {
				t.Run(v.id+"/"+name+"/"+shape, func(t *testing.T) {
					t.Parallel()
					id := unsafeInName.ReplaceAllString("thoughts "+v.id+name+shape, "-")
					v.desk.put(id, answer{text: good, in: 30, out: 20, thoughts: thoughts})
					run := start(t, c, asks(shape, id, v, v.seeing, ""))
					events := finish(t, c, run)
					r := readRecord(t, c, run)
					span := r.spans["openwop.activity."+v.id]
					require.EqualValues(t, 20, span["gen_ai.usage.output_tokens"])
					require.Len(t, r.cost.Calls, 1)
					if thoughts == 0 {
						require.Empty(t, of(events, logged))
						require.NotContains(t, span, "gen_ai.usage.reasoning.output_tokens")
						require.Nil(t, r.cost.Total.ReasoningTokens)
						return
					}
					requireHas(t, `{"level":"debug","nodeId":"ask","fields":{"reason":"model_usage","reasoningTokens":7}}`, of(events, logged)[0].Payload)
					require.EqualValues(t, 7, span["gen_ai.usage.reasoning.output_tokens"])
					require.Equal(t, 7, *r.cost.Total.ReasoningTokens)
					require.Equal(t, 7, *r.cost.Calls[0].ReasoningTokens)
					checkReplay(t, c, run, events)
				})
			}
		}
	}
}

// checkReplay replays a run, and expects its events.
func checkReplay(t *testing.T, c *harness.Client, run string, events []harness.Event) {
	t.Helper()
	a, err := c.Do(within(t, 30*time.Second), http.MethodPost, "/v1/runs/"+run+":fork", `{"mode":"replay","fromSeq":0}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var fork struct{ RunID string }
	require.NoError(t, a.JSON(&fork))
	replayed := finish(t, c, fork.RunID)
	require.Equal(t, typesBut(events, ""), typesBut(replayed, ""))
	for i, e := range events {
		if e.Type == logged {
			require.JSONEq(t, string(e.Payload), string(replayed[i].Payload))
		}
	}
}

// An envelope of a lower version is validated against the advertised one, and the bundle's span says so
// (OpenWOP envelope contract §4.1, §10).
func TestRecord_HasTheDriftOfAVersion(t *testing.T) {
	needsHost(t)
	c := client(t, apiKey)
	v := vendors[0]
	for name, tc := range map[string]struct {
		version string
		drift   bool
	}{"below": {`"schemaVersion":0,`, true}, "advertised": {`"schemaVersion":1,`, false}, "absent": {"", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := "drift-" + name
			v.desk.put(id, answer{text: `{"type":"` + kind + `",` + tc.version + `"payload":` + good + `}`, in: 3, out: 3})
			run := start(t, c, asks("envelope-whole", id, v, v.seeing, ""))
			events := finish(t, c, run)
			require.Len(t, of(events, artifact), 1, "%s", dump(events))
			span := readRecord(t, c, run).spans["openwop.envelope.accept"]
			if !tc.drift {
				require.NotContains(t, span, "envelope_schema_version_drift")
				return
			}
			require.Equal(t, true, span["envelope_schema_version_drift"])
			require.EqualValues(t, 0, span["envelope_schema_version"])
			require.EqualValues(t, 1, span["envelope_schema_version_floor"])
		})
	}
}
