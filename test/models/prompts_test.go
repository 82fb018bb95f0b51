package models

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

const composed = "prompt.composed"

// sent is the payload of a recorded prompt, and its body.
type sent struct {
	Refs                                           []string
	Kind, Hash, Composed, SystemPrompt, UserPrompt string
	body                                           struct {
		System   string
		Messages []struct{ Role, Content string }
		Schema   json.RawMessage
	}
}

func prompts(t *testing.T, events []harness.Event) (out []sent) {
	t.Helper()
	for _, e := range of(events, composed) {
		var p sent
		require.NoError(t, json.Unmarshal(e.Payload, &p))
		require.NoError(t, json.Unmarshal([]byte(p.Composed), &p.body))
		out = append(out, p)
	}
	return out
}

// OpenWOP envelope contract §19.2: with full observability a run shows each prompt as the vendor got
// it: the host's text, the schema, the correction. A repeated call has one event, and a replay the
// events of its source.
func TestPrompts_CanBeSeen(t *testing.T) {
	t.Parallel()
	checked(t, &harness.Client{})
	h, _ := hostOnLines(t, "--prompt-observability", "full")
	c := checked(t, h.Client("dev-key"))
	for _, v := range vendors {
		for shape := range shapes {
			name := "seen-" + v.id + "-" + shape
			v.desk.put(name, answer{text: wrong, in: 5, out: 5}, answer{text: good, in: 6, out: 6})
			id := start(t, c, asks(shape+"-whole", name, v, v.seeing, ""))
			events := finish(t, c, id)
			list := typesBut(events, chunk)
			require.Equal(t, []string{"run.started", started, composed, usage, retry, composed, usage}, list[:7], "%s", dump(events))
			seen, calls := prompts(t, events), v.desk.of(name)
			require.Len(t, seen, 2)
			require.Len(t, calls, 2)
			for i, p := range seen {
				got, err := v.read(calls[i].body)
				require.NoError(t, err)
				require.Empty(t, p.Refs)
				require.Equal(t, "system+user", p.Kind)
				require.Equal(t, p.SystemPrompt, p.body.System)
				require.JSONEq(t, string(got.schema), string(p.body.Schema), "as the vendor got it")
				texts := []string{p.body.System}
				for _, m := range p.body.Messages {
					require.Contains(t, p.UserPrompt, m.Content)
					texts = append(texts, m.Content)
				}
				for _, text := range texts {
					quoted, err := json.Marshal(text)
					require.NoError(t, err)
					require.Contains(t, unescaped(got.text), unescaped(string(quoted[1:len(quoted)-1])))
				}
			}
			require.Len(t, seen[0].body.Messages, 1)
			require.Len(t, seen[1].body.Messages, 2, "with the correction")
			require.NotEqual(t, seen[0].Hash, seen[1].Hash)

			a, err := c.Do(within(t, 30*time.Second), http.MethodPost, "/v1/runs/"+id+":fork", `{"mode":"replay"}`)
			require.NoError(t, err)
			var fork struct{ RunID string }
			require.NoError(t, a.JSON(&fork))
			require.Equal(t, seen, prompts(t, finish(t, c, fork.RunID)), "a replay")
			require.Len(t, v.desk.of(name), 2, "a replay calls no model")

			a, err = c.Do(within(t, 30*time.Second), http.MethodGet, "/v1/runs/"+id+"/debug-bundle", "")
			require.NoError(t, err)
			require.Contains(t, string(a.Body), seen[1].Hash)
			require.NotContains(t, string(a.Body), "six times seven", "a bundle has no content")
		}
	}
}

// unescaped removes differences between JSON encoders.
func unescaped(text string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text)
}

// A dispatcher that takes a run over records no prompt twice for an attempt.
func TestPrompts_AreRecordedOnceWhereverTheHostDies(t *testing.T) {
	t.Parallel()
	harness.InOneProcess(t, "it reads the embedded log's file to time the kill")
	if testing.Short() {
		t.Skip("SKIPPED, kills real processes: run without -short")
	}
	h, lines := hostOnLines(t, "--prompt-observability", "hashed")
	for i, kill := range []func(*testing.T, *crash) bool{killBefore, killRetry, killDuring} {
		v := vendors[i%len(vendors)]
		k := &crash{h: h, v: v, line: lines[v.id], shape: "value", mode: "streamed", name: "once-" + v.id, rand: harness.Seed(t)}
		require.True(t, kill(t, k))
		h.Launch()
		events := finish(t, checked(t, h.Client("dev-key")), k.run)
		checkLog(t, k, events)
		for j, e := range events {
			if e.Type != composed {
				continue
			}
			rest := events[j+1:]
			next := slices.IndexFunc(rest, func(e harness.Event) bool {
				return e.Type == composed || e.Type == usage || e.Type == again
			})
			require.GreaterOrEqual(t, next, 0, "%s", dump(events))
			require.NotEqual(t, composed, rest[next].Type, "one event for a call\n%s", dump(events))
		}
		require.GreaterOrEqual(t, len(of(events, composed)), len(of(events, usage)))
	}
}
