package models

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// partial is the payload of an output.chunk event.
type partial struct {
	NodeID, RunID, Chunk, EnvelopeType string
	IsLast                             bool
	Payload                            json.RawMessage
	Partial                            *struct {
		IsPartial    bool
		Index, Total int
	}
}

// The valid part of an answer is streamed while it arrives, redacted, over SSE and in the log, and a replay
// repeats it (OpenWOP envelope contract §2, PartialInfo; §11).
func TestPartials_OfEveryVendor(t *testing.T) {
	t.Parallel()
	client(t, apiKey) // load the schemas before the parallel tests
	note := "It is what the guide says, with the key " + apiKey + " that is a secret, on the last of its many pages."
	said := strings.ReplaceAll(note, apiKey, "[REDACTED")
	for _, v := range vendors {
		for _, shape := range []string{"value", "envelope"} {
			t.Run(v.id+"/"+shape, func(t *testing.T) {
				t.Parallel()
				id := unsafeInName.ReplaceAllString(t.Name(), "-")
				payload := `{"answer":42,"note":"` + note + `"}`
				text, kindOf := payload, ""
				if shape == "envelope" {
					text, kindOf = `{"envelopes":[{"type":"`+kind+`","payload":`+payload+`,"meta":null}]}`, kind
				}
				v.desk.put(id, answer{text: text, in: 100, out: 10})
				c := client(t, apiKey)
				run := start(t, c, asks(shape+"-partials", id, v, v.seeing, ""))
				var streamed []partial
				_, err := c.Stream(within(t, 60*time.Second), "/v1/runs/"+run+"/events?streamMode=messages", func(f harness.Frame) bool {
					if f.Event != "ai.message.chunk" {
						return true
					}
					streamed = append(streamed, parsePartial(t, []byte(f.Data)))
					return !streamed[len(streamed)-1].IsLast
				})
				require.NoError(t, err)
				events := finish(t, c, run)
				require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
				require.NotContains(t, dump(events), apiKey)
				var logged []partial
				for _, e := range of(events, chunk) {
					logged = append(logged, parsePartial(t, e.Payload))
				}
				require.Equal(t, logged, streamed)

				n, last := 0, ""
				for _, p := range logged {
					if p.Partial == nil {
						continue
					}
					require.Equal(t, n, p.Partial.Index)
					require.True(t, p.Partial.IsPartial)
					require.Equal(t, kindOf, p.EnvelopeType)
					var value struct{ Note string }
					require.NoError(t, json.Unmarshal(p.Payload, &value))
					require.True(t, strings.HasPrefix(value.Note, last), "%q grows to %q", last, value.Note)
					require.True(t, strings.HasPrefix(said, value.Note) || strings.HasPrefix(value.Note, said[:strings.Index(said, "[")]), value.Note)
					n, last = n+1, value.Note
				}
				require.Greater(t, n, 1)

				a, err := c.Do(within(t, 30*time.Second), http.MethodPost, "/v1/runs/"+run+":fork", `{"mode":"replay"}`)
				require.NoError(t, err)
				require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
				var fork struct{ RunID string }
				require.NoError(t, a.JSON(&fork))
				var repeated []partial
				for _, e := range of(finish(t, c, fork.RunID), chunk) {
					repeated = append(repeated, parsePartial(t, e.Payload))
				}
				for i := range repeated {
					repeated[i].RunID = run
				}
				require.Equal(t, logged, repeated)
				require.Len(t, v.desk.of(id), 1, "a replay calls no model")
			})
		}
	}
}

func parsePartial(t *testing.T, raw []byte) (p partial) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, &p))
	return p
}

// The form that turn: auto chose is in the log of every run, and in its view.
func TestTurn_RecordsTheChosenForm(t *testing.T) {
	t.Parallel()
	client(t, apiKey)
	for _, v := range vendors {
		id := unsafeInName.ReplaceAllString(t.Name()+v.id, "-")
		v.desk.put(id, answer{text: good, in: 100, out: 10})
		c := client(t, apiKey)
		run := start(t, c, asks("envelope-streamed", id, v, v.seeing, ""))
		events := finish(t, c, run)
		require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
		require.Contains(t, string(of(events, completed)[0].Payload), `"turn":"envelopes"`)
		a, err := c.Do(within(t, 30*time.Second), http.MethodGet, "/v1/runs/"+run+":view", "")
		require.NoError(t, err)
		require.Contains(t, string(a.Body), `"turn":"envelopes"`)
		a, err = c.Do(within(t, 30*time.Second), http.MethodPost, "/v1/runs/"+run+":fork", `{"mode":"replay"}`)
		require.NoError(t, err)
		var fork struct{ RunID string }
		require.NoError(t, a.JSON(&fork))
		require.Contains(t, string(of(finish(t, c, fork.RunID), completed)[0].Payload), `"turn":"envelopes"`)
	}
}
