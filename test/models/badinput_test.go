package models

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/anthropic"
	"waybill.dev/waybill/test/double/gemini"
	"waybill.dev/waybill/test/double/openaicompat"
	"waybill.dev/waybill/test/harness"
)

// requireFailed checks that a run failed with this code and a message that contains these words and
// no vendor text.
func requireFailed(t *testing.T, events []harness.Event, code string, words ...string) {
	t.Helper()
	last := events[len(events)-1]
	require.Equal(t, "run.failed", last.Type, "%s", dump(events))
	requireHas(t, `{"error":{"code":"`+code+`"}}`, last.Payload)
	for _, w := range words {
		require.Contains(t, string(last.Payload), w)
	}
	require.NotContains(t, string(last.Payload), "xyzzy")
}

func TestBadInput_AnUnknownProviderOrModel(t *testing.T) {
	c := client(t, apiKey)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", asks("value-whole", "nowhere", &vendor{id: "ghost"}, "m", ""))
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Equal(t, "validation_error", a.Code())
	require.Contains(t, string(a.Body), "/configurable/ai.provider")
	for _, v := range vendors {
		events := finish(t, c, start(t, c, asks("value-whole", "nowhere", v, "ghost-1", "")))
		requireFailed(t, events, "model_not_supported", v.id)
		require.Empty(t, of(events, again), "a retry cannot help")
		require.Empty(t, v.desk.of("nowhere"))
	}
}

// A request that a vendor rejects is no mistake of the caller who started the run.
func TestBadInput_ARejectedRequest(t *testing.T) {
	c := client(t, apiKey)
	for _, v := range vendors {
		v.desk.put("rejected", answer{status: http.StatusBadRequest})
		events := finish(t, c, start(t, c, asks("value-whole", "rejected", v, v.seeing, "")))
		requireFailed(t, events, "provider_request_invalid", "does not accept the request", serverMessage)
		require.Empty(t, of(events, again), "a retry cannot help")
		require.Len(t, v.desk.of("rejected"), 1)
	}
}

// The doubles reject calls without a schema. All other tests of this package rely on it.
func TestBadInput_TheDoublesFailACallWithoutASchema(t *testing.T) {
	c := client(t, apiKey)
	for _, v := range vendors {
		v.desk.put("schemaless", answer{text: "hello", in: 1, out: 1})
		events := finish(t, c, start(t, c, asks("talk", "schemaless", v, v.seeing, "")))
		require.Equal(t, "run.failed", events[len(events)-1].Type, v.id)
		require.Empty(t, v.desk.of("schemaless"), v.id)
	}
}

// strictVendors starts doubles that accept only one key each.
func strictVendors(t *testing.T) map[string]string {
	t.Helper()
	o := openaicompat.New(openaicompat.Options{OpenAI: true, Key: "sk-right-openai-1", Models: []string{vendors[0].seeing}})
	a := anthropic.New(anthropic.Options{Key: "sk-right-anthropic-1", Models: []string{vendors[1].seeing}})
	g := gemini.New(gemini.Options{Key: "sk-right-gemini-1", Models: []string{vendors[2].seeing}})
	for _, s := range []interface{ Close() }{o, a, g} {
		t.Cleanup(s.Close)
	}
	return map[string]string{"openai": o.URL(), "anthropic": a.URL(), "gemini": g.URL()}
}

func TestBadInput_AMissingOrWrongKey(t *testing.T) {
	needsHost(t)
	addresses := strictVendors(t)
	for name, env := range map[string][]string{"missing": nil, "wrong": keys(vendors)} {
		h := harness.StartWith(t, harness.Options{Args: append(hostArgs(addresses), "--durability", "process"), Env: env})
		require.NoError(t, h.Deploy(workflows(), "dev-key"))
		c := checked(t, h.Client("dev-key"))
		for _, v := range vendors {
			events := finish(t, c, start(t, c, asks("value-whole", "keyless", v, v.seeing, "")))
			requireFailed(t, events, "credential_required", "WAYBILL_PROVIDER_"+strings.ToUpper(v.id)+"_KEY")
			require.Empty(t, of(events, again), "%s: a retry cannot help", name)
			require.NotContains(t, dump(events), v.key)
			require.NotContains(t, h.Log(), v.key)
		}
	}
}

func needsHost(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
}

// OpenWOP envelope contract §20: a schema that the vendor's strict mode cannot express fails with
// the vendor and the path, and no model is called.
func TestBadInput_ASchemaThatTheVendorCannotExpress(t *testing.T) {
	c := client(t, apiKey)
	for name, schema := range map[string]string{
		"never": `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"not":{"type":"string"}}}}`,
		"tree":  `{"type":"object","additionalProperties":false,"required":["kids"],"properties":{"kids":{"type":"array","items":{"$ref":"#"}}}}`,
	} {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", workflow("wants-"+name, node("ask", "core.ai.structuredOutput", `{"prompt":"`+question+`","outputSchema":`+schema+`}`, "{}")))
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
		for _, v := range vendors {
			v.desk.put("wants-"+name, answer{text: `{"kids":[{"kids":[]}]}`, in: 1, out: 1})
			events := finish(t, c, start(t, c, asks("wants-"+name, "wants-"+name, v, v.seeing, "")))
			switch {
			case name == "never":
				requireFailed(t, events, "response_schema_invalid", v.id, "/properties/a/not")
				require.Empty(t, v.desk.of("wants-"+name))
			case v.id == "anthropic": // the only vendor that rejects recursion
				requireFailed(t, events, "response_schema_invalid", v.id, "/properties/kids/items")
				require.Empty(t, v.desk.of("wants-"+name))
			default:
				require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
			}
		}
	}
}

// OpenWOP envelope contract §26 case 5.
func TestBadInput_AnAnswerWithAKeyTwice(t *testing.T) {
	c := client(t, apiKey)
	const twice = `{"answer":41,"answer":42,"note":null}`
	for _, v := range vendors {
		for shape := range shapes {
			name := "twice-" + v.id + "-" + shape
			v.desk.put(name, withUsage(answer{text: twice}, answer{text: good})...)
			events := finish(t, c, start(t, c, asks(shape+"-whole", name, v, v.seeing, "")))
			require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
			require.Len(t, of(events, retry), 1, "the answer must be rejected\n%s", dump(events))
		}
	}
}

// The vendor's token counts are recorded as reported if they are valid counts (OpenWOP envelope
// contract §19.1). Wrong counts do not lose the answer.
func TestBadInput_AVendorWithWrongUsage(t *testing.T) {
	c := client(t, apiKey)
	for _, v := range vendors {
		for name, lie := range map[string][2]int{"negative": {-5, -7}, "huge": {1 << 31, 1 << 40}, "nothing": {0, 0}} {
			id := fmt.Sprintf("lie-%s-%s", v.id, name)
			v.desk.put(id, answer{text: good, in: lie[0], out: lie[1]}, answer{text: good, in: lie[0], out: lie[1]})
			events := finish(t, c, start(t, c, asks("value-streamed", id, v, v.seeing, "")))
			last := events[len(events)-1]
			if last.Type == "run.failed" { // a count of another type invalidates the vendor's answer
				requireFailed(t, events, "provider_unavailable")
				require.Equal(t, "huge", name, "%s", dump(events))
				continue
			}
			require.Equal(t, "run.completed", last.Type, "%s", dump(events))
			require.Len(t, of(events, usage), 1)
			in, out := max(lie[0], 0), max(lie[1], 0)
			if v.id == "anthropic" && out == 0 {
				out = 1 // the start of its stream has counted one, and a later zero is no count
			}
			requireHas(t, fmt.Sprintf(`{"inputTokens":%d,"outputTokens":%d}`, in, out), of(events, usage)[0].Payload)
		}
	}
}

// A call whose stream stays open and silent can be cancelled.
func TestBadInput_ACallWithoutAnAnswerCanBeCancelled(t *testing.T) {
	c := client(t, apiKey)
	for _, v := range vendors {
		name := "stalled-" + v.id
		v.desk.put(name, answer{text: `{"answer":`, end: stalled})
		id := start(t, c, asks("envelope-streamed", name, v, v.seeing, ""))
		require.Eventually(t, func() bool { return v.desk.count(name) == 1 }, 30*time.Second, time.Millisecond)
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+id+"/cancel", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		events := finish(t, c, id)
		require.Equal(t, "run.cancelled", events[len(events)-1].Type)
		require.Empty(t, of(events, usage))
	}
}
