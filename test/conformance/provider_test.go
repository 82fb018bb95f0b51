package conformance

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/openaicompat"
	"waybill.dev/waybill/test/harness"
)

// triage is a valid answer of the example's kind.
const triage = `{"reasoning":"charged twice","category":"billing","priority":"urgent","language":"en","summary":"Second charge for one lamp.",` +
	`"action":{"kind":"refund","orderId":"WL-48213","reason":"double charge"}}`

// say splits a text into chunks, as a model does.
func say(text string) []string {
	var pieces []string
	for len(text) > 9 {
		pieces, text = append(pieces, text[:9]), text[9:]
	}
	return append(pieces, text)
}

const providerKey = "sk-double-0a1b2c3d4e5f6071"

// vendor starts a host with three providers of one strict server: known has its key, wrong has
// another, bare has none.
func vendor(t *testing.T) (*openaicompat.Server, *harness.Client) {
	t.Helper()
	plain := client(t, testKey) // loads the schemas; skips under -short
	server := openaicompat.New(openaicompat.Options{Key: providerKey})
	t.Cleanup(server.Close)
	t.Setenv("WAYBILL_PROVIDER_KNOWN_KEY", providerKey)
	t.Setenv("WAYBILL_PROVIDER_WRONG_KEY", "sk-double-wrong-wrong-wrong")
	h := harness.Start(t, "--lease", "1s", "--provider", "known="+server.URL(), "--provider", "wrong="+server.URL(), "--provider", "bare="+server.URL())
	c := plain.To(h, "dev-key")
	for id, retries := range map[string]string{"patient": "2", "hasty": "0"} {
		doc := definition(id, node("ask", "core.ai.structuredOutput",
			`{"maxTokens":64,"outputSchema":{"type":"object","additionalProperties":false,"required":["answer","note"],"properties":{"answer":{"type":"integer"},"note":{"type":["string","null"]}}}}`,
			`{"messages":{"type":"static","value":[{"role":"user","content":"What is six times seven?"}]}}`), "", "", "")
		doc = strings.Replace(doc, `"settings":{}`, `"settings":{"maxRetries":`+retries+`}`, 1)
		a := do(t, c, http.MethodPost, "/v1/workflows", doc)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	}
	return server, c
}

func ask(workflow, provider string) string {
	return `{"workflowId":"` + workflow + `","configurable":{"ai.provider":"` + provider + `","ai.model":"` + openaicompat.DefaultModel + `"}}`
}

// sent is the content of a request to the model's server.
type sent struct {
	Model          string
	MaxTokens      int `json:"max_completion_tokens"`
	MaxTokensOld   int `json:"max_tokens"`
	Stream         bool
	ResponseFormat struct {
		Type       string
		JSONSchema struct {
			Strict bool
			Schema json.RawMessage
		} `json:"json_schema"`
	} `json:"response_format"`
	Messages []struct{ Role string }
}

func (s sent) budget() int { return max(s.MaxTokens, s.MaxTokensOld) }

// since returns the requests after the first n.
func since(t *testing.T, s *openaicompat.Server, n int) []sent {
	t.Helper()
	var out []sent
	for _, r := range s.Requests()[n:] {
		var v sent
		require.NoError(t, json.Unmarshal(r.Body, &v), "%s", r.Body)
		out = append(out, v)
	}
	return out
}

func count(events []harness.Event, typ string) int {
	n := 0
	for _, e := range events {
		if e.Type == typ {
			n++
		}
	}
	return n
}

func TestProvider_OverRealHTTP(t *testing.T) {
	server, c := vendor(t)
	// Sequential: replies are taken from one queue.

	t.Run("the example runs", func(t *testing.T) {
		n := len(server.Requests())
		server.Enqueue(openaicompat.Reply{Pieces: say(triage), Usage: &openaicompat.Usage{Prompt: 321, Completion: 45}})
		id, events := run(t, c, `{"workflowId":"triage","inputs":{"mail":"You charged me twice."},"configurable":{"ai.provider":"known","ai.model":"`+openaicompat.DefaultModel+`"}}`)
		require.Equal(t, "completed", read(t, c, id).Status, "%v", names(events))
		require.Equal(t, 1, count(events, "artifact.created"))
		require.Equal(t, 1, count(events, "provider.usage"))
		require.Positive(t, count(events, "output.chunk"))
		for _, e := range events {
			if e.Type == "provider.usage" {
				require.Contains(t, string(e.Payload), `"inputTokens":321`)
				require.Contains(t, string(e.Payload), `"outputTokens":45`)
			}
			require.NotContains(t, string(e.Raw), providerKey)
			require.NotContains(t, string(e.Raw), server.URL(), "the address of a server is disclosed nowhere")
		}
		reqs := since(t, server, n)
		require.Len(t, reqs, 1)
		require.True(t, reqs[0].Stream)
		require.Equal(t, "json_schema", reqs[0].ResponseFormat.Type)
		require.False(t, reqs[0].ResponseFormat.JSONSchema.Strict, "a server of one's own gets the schema as written")
		require.Contains(t, string(reqs[0].ResponseFormat.JSONSchema.Schema), `"orderId"`)
		require.Equal(t, "Bearer "+providerKey, server.Requests()[n].Header.Get("Authorization"))
		require.NotEmpty(t, server.Requests()[n].Header.Get("User-Agent"))
	})

	t.Run("a key that is refused is named", func(t *testing.T) {
		for provider, name := range map[string]string{"wrong": "WAYBILL_PROVIDER_WRONG_KEY", "bare": "WAYBILL_PROVIDER_BARE_KEY"} {
			id, events := run(t, c, ask("patient", provider))
			s := read(t, c, id)
			require.Equal(t, "failed", s.Status)
			require.Equal(t, "credential_required", s.Error.Code)
			require.Contains(t, s.Error.Message, name)
			require.NotContains(t, s.Error.Message, "sk-double")
			require.Zero(t, count(events, "node.retried"), "waiting does not help")
		}
	})

	t.Run("a rate limit is waited for", func(t *testing.T) {
		server.Enqueue(openaicompat.Reply{Status: 429, RetryAfter: "1"}, openaicompat.Reply{Pieces: say(`{"answer":42,"note":null}`)})
		id, events := run(t, c, ask("patient", "known"))
		require.Equal(t, "completed", read(t, c, id).Status, "%v", names(events))
		require.Equal(t, 1, count(events, "node.retried"))
		require.Equal(t, 1, count(events, "provider.usage"), "a call without an answer used nothing")
		require.Zero(t, count(events, "envelope.retry.attempted"), "it is no failed attempt of the envelope")
	})

	t.Run("without retries it fails", func(t *testing.T) {
		server.Enqueue(openaicompat.Reply{Status: 500})
		id, events := run(t, c, ask("hasty", "known"))
		require.Equal(t, "provider_unavailable", read(t, c, id).Error.Code)
		require.Equal(t, "run.started node.started node.failed run.failed", strings.Join(names(events), " "))
	})

	t.Run("without retries it waits for capacity", func(t *testing.T) {
		for _, status := range []int{429, 503, 529} {
			server.Enqueue(openaicompat.Reply{Status: status}, openaicompat.Reply{Pieces: say(`{"answer":42,"note":null}`)})
			id, events := run(t, c, ask("hasty", "known"))
			require.Equal(t, "completed", read(t, c, id).Status, "%v", names(events))
			require.Equal(t, 1, count(events, "node.retried"))
		}
	})

	t.Run("an aborted answer is requested again", func(t *testing.T) {
		for _, end := range []openaicompat.End{openaicompat.EndCut, openaicompat.EndSilent, openaicompat.EndError} {
			server.Enqueue(openaicompat.Reply{Pieces: []string{`{"ans`}, End: end}, openaicompat.Reply{Pieces: say(`{"answer":42,"note":"x"}`)})
			id, events := run(t, c, ask("patient", "known"))
			require.Equal(t, "completed", read(t, c, id).Status, "%v", names(events))
			require.Equal(t, 1, count(events, "node.retried"))
		}
	})

	t.Run("a refusal is final", func(t *testing.T) {
		n := len(server.Requests())
		server.Enqueue(openaicompat.Reply{Refusal: "I will not say xyzzy."})
		id, events := run(t, c, ask("patient", "known"))
		s := read(t, c, id)
		require.Equal(t, "envelope_refusal", s.Error.Code)
		require.NotContains(t, s.Error.Message, "xyzzy")
		require.Equal(t, "provider.usage envelope.refusal", harness.Between(events))
		require.Zero(t, count(events, "node.retried"))
		require.Len(t, since(t, server, n), 1)
	})

	t.Run("a truncation gets a larger budget and no other change", func(t *testing.T) {
		n := len(server.Requests())
		server.Enqueue(openaicompat.Reply{Pieces: []string{`{"answer":4`}, FinishReason: "length"}, openaicompat.Reply{Pieces: say(`{"answer":42,"note":null}`)})
		id, events := run(t, c, ask("patient", "known"))
		require.Equal(t, "completed", read(t, c, id).Status, "%v", names(events))
		require.Equal(t, "provider.usage envelope.truncated envelope.retry.attempted provider.usage", harness.Between(events))
		reqs := since(t, server, n)
		require.Len(t, reqs, 2)
		require.Equal(t, 64, reqs[0].budget())
		require.Equal(t, 128, reqs[1].budget())
		require.Len(t, reqs[1].Messages, len(reqs[0].Messages), "nothing was added to the prompt")
	})

	t.Run("a wrong answer gets a correction at the same budget", func(t *testing.T) {
		n := len(server.Requests())
		server.Enqueue(openaicompat.Reply{Pieces: say(`{"answer":"forty-two xyzzy","note":null}`)}, openaicompat.Reply{Pieces: say(`{"answer":42,"note":null}`)})
		id, events := run(t, c, ask("patient", "known"))
		require.Equal(t, "completed", read(t, c, id).Status, "%v", names(events))
		require.Equal(t, "provider.usage envelope.retry.attempted provider.usage", harness.Between(events))
		reqs := since(t, server, n)
		require.Equal(t, reqs[0].budget(), reqs[1].budget())
		require.Greater(t, len(reqs[1].Messages), len(reqs[0].Messages))
		require.NotContains(t, string(server.Requests()[n+1].Body), "xyzzy", "the wrong answer is not quoted")
	})

	t.Run("an unknown model", func(t *testing.T) {
		body := strings.Replace(ask("patient", "known"), openaicompat.DefaultModel, "ghost", 1)
		id, _ := run(t, c, body)
		require.Equal(t, "model_not_supported", read(t, c, id).Error.Code)
	})

	t.Run("cancelling ends a call that hangs", func(t *testing.T) {
		server.Enqueue(openaicompat.Reply{Pieces: []string{`{`}, End: openaicompat.EndStall})
		n := len(server.Requests())
		id := create(t, c, ask("patient", "known")).RunID
		require.Eventually(t, func() bool { return len(server.Requests()) > n }, 30*time.Second, 10*time.Millisecond)
		require.Equal(t, http.StatusOK, do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "").Status)
		await(t, c, id, patience, "cancelled")
	})
}
