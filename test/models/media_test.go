package models

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/anthropic"
	"waybill.dev/waybill/test/double/gemini"
	"waybill.dev/waybill/test/double/openaicompat"
	"waybill.dev/waybill/test/harness"
)

// studio is a host with three vendors whose models paint, speak, see and hear.
type studio struct {
	host   *harness.Host
	client *harness.Client
	// hold holds the next answer of gpt-4o-mini until the caller disconnects.
	hold atomic.Bool

	mu    sync.Mutex // guards calls
	calls map[string][]string
}

// The models of the studio.
const (
	paints = "gemini-2.5-flash-image"
	speaks = "gpt-audio-1.5"
)

var (
	picture = append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("picture."), 512)...)
	samples = bytes.Repeat([]byte{1, 2}, 2048)
)

func (s *studio) record(model string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[model] = append(s.calls[model], string(body))
}

// of returns the requests to a model.
func (s *studio) of(model string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls[model]...)
}

func openStudio(t *testing.T, args ...string) *studio {
	t.Helper()
	client(t, apiKey) // skips under -short
	s := &studio{calls: map[string][]string{}}
	gem := gemini.New(gemini.Options{Models: []string{paints, "gemini-2.5-flash"}, Answer: func(r gemini.Recorded) gemini.Reply {
		if strings.Contains(r.Path, paints) {
			s.record(paints, r.Body)
			return gemini.Reply{Pieces: []string{"A red lamp."}, Media: []gemini.Media{{MIME: "image/png", Data: picture}}}
		}
		s.record("gemini-2.5-flash", r.Body)
		return gemini.Reply{Pieces: []string{"I see."}}
	}})
	t.Cleanup(gem.Close)
	open := openaicompat.New(openaicompat.Options{OpenAI: true, Models: []string{speaks, "gpt-4o-mini"}, Answer: func(r openaicompat.Recorded) openaicompat.Reply {
		var asked struct{ Model string }
		_ = json.Unmarshal(r.Body, &asked) // the double has read it
		s.record(asked.Model, r.Body)
		if asked.Model == speaks {
			return openaicompat.Reply{Pieces: []string{"Good morning."}, Sound: samples}
		}
		if s.hold.CompareAndSwap(true, false) {
			return openaicompat.Reply{Pieces: []string{"I"}, Step: make(chan struct{})}
		}
		return openaicompat.Reply{Pieces: []string{"I see."}}
	}})
	t.Cleanup(open.Close)
	claude := anthropic.New(anthropic.Options{Models: []string{"claude-opus-5-5"}, Answer: func(r anthropic.Recorded) anthropic.Reply {
		s.record("claude-opus-5-5", r.Body)
		return anthropic.Reply{Pieces: []string{"I see."}}
	}})
	t.Cleanup(claude.Close)
	s.host = harness.StartWith(t, harness.Options{
		Args: append([]string{
			"--provider", "gemini=" + gem.URL(), "--provider", "openai=" + open.URL(), "--provider", "anthropic=" + claude.URL(),
			"--durability", "process", "--api-key", apiKey + "=acme:*", "--api-key", quietKey + "=quiet:*",
		}, args...),
		Env: []string{
			"WAYBILL_PROVIDER_GEMINI_KEY=AIza-double-0123456789", "WAYBILL_PROVIDER_OPENAI_KEY=sk-double-0123456789",
			"WAYBILL_PROVIDER_ANTHROPIC_KEY=sk-ant-double-0123456789",
		},
	})
	s.client = checked(t, s.host.Client(apiKey))
	return s
}

// makes is the node that makes an asset, and looksAt one that gets it at its port media.
func makes(kind, provider, model string) string {
	return node("make", "core.ai.callPrompt", fmt.Sprintf(`{"prompt":"Make it.","envelopeType":%q,"provider":%q,"model":%q,"expectsStreaming":false}`, kind, provider, model), "{}")
}

func looksAt(id, provider, model, port string) string {
	return node(id, "core.ai.callPrompt", fmt.Sprintf(`{"prompt":"What is it?","provider":%q,"model":%q,"expectsStreaming":false}`, provider, model),
		`{"media":{"type":"connection","nodeId":"make","outputKey":"`+port+`"}}`)
}

func flow(id string, nodes ...string) string {
	var edges []string
	for i := range nodes[1:] {
		edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":"make","sourceOutput":"output","targetNodeId":"look%d","targetInput":"from"}`, i, i))
	}
	return fmt.Sprintf(`{"id":%q,"name":"n","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		id, strings.Join(nodes, ","), strings.Join(edges, ","))
}

func (s *studio) run(t *testing.T, c *harness.Client, doc, body string) (string, []harness.Event) {
	t.Helper()
	a, err := c.Do(within(t, 30*time.Second), http.MethodPost, "/v1/workflows", doc)
	require.NoError(t, err)
	require.Less(t, a.Status, http.StatusBadRequest, "%s", a.Body)
	id := start(t, c, body)
	return id, finish(t, c, id)
}

func outputsOf(t *testing.T, events []harness.Event, nodeID string) map[string]json.RawMessage {
	t.Helper()
	for _, e := range of(events, completed) {
		var p struct {
			NodeID  string
			Outputs map[string]json.RawMessage
		}
		require.NoError(t, json.Unmarshal(e.Payload, &p))
		if p.NodeID == nodeID {
			return p.Outputs
		}
	}
	t.Fatalf("node %s did not complete: %s", nodeID, dump(events))
	return nil
}

// A picture that a model paints is a part of the prompts of the next nodes, with its bytes, for every
// vendor; whether it is in the log or stored, and whether it comes as a payload or as envelopes. The log
// has its reference.
func TestMedia_APictureGoesToTheNextModel(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"within the log": nil, "stored": {"--max-inline-media-bytes", "1000"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStudio(t, args...)
			models := []string{"gpt-4o-mini", "claude-opus-5-5", "gemini-2.5-flash"}
			_, events := s.run(t, s.client, flow("look", makes("media.image", "gemini", paints),
				looksAt("look0", "openai", models[0], "output"), looksAt("look1", "anthropic", models[1], "output"),
				looksAt("look2", "gemini", models[2], "envelopes")), `{"workflowId":"look"}`)
			require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
			data := base64.StdEncoding.EncodeToString(picture)
			for _, m := range models {
				calls := s.of(m)
				require.Len(t, calls, 1, m)
				require.Equal(t, 1, strings.Count(calls[0], data), "%s gets the picture once", m)
				require.NotContains(t, calls[0], "/v1/assets/", "no address that the vendor cannot reach")
				require.Contains(t, calls[0], "What is it?")
			}
			for _, e := range events {
				if e.Type == started || len(args) > 0 {
					require.NotContains(t, string(e.Raw), data, e.Type)
				}
			}
			var list []struct {
				Type string
				Meta struct{ Rendering map[string]string }
			}
			require.NoError(t, json.Unmarshal(outputsOf(t, events, "make")["envelopes"], &list))
			require.Equal(t, map[string]string{"display": "image", "mimeType": "image/png", "alt": "A red lamp."}, list[0].Meta.Rendering)
		})
	}
}

// OpenWOP envelope contract §16.2: audio-output and audio-input, from one vendor to another.
func TestMedia_SpeechGoesToTheNextModel(t *testing.T) {
	t.Parallel()
	s := openStudio(t, "--max-inline-media-bytes", "1000")
	_, events := s.run(t, s.client, flow("hear", makes("media.audio", "openai", speaks),
		looksAt("look0", "gemini", "gemini-2.5-flash", "output"), looksAt("look1", "openai", speaks, "output")), `{"workflowId":"hear"}`)
	require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
	var made struct{ MIMEType, URL string }
	require.NoError(t, json.Unmarshal(outputsOf(t, events, "make")["output"], &made))
	require.Equal(t, "audio/wav", made.MIMEType)
	sound := fetchAsset(t, made.URL)
	require.True(t, bytes.HasPrefix(sound, []byte("RIFF")))
	require.True(t, bytes.HasSuffix(sound, samples))
	data := base64.StdEncoding.EncodeToString(sound)
	require.Contains(t, s.of("gemini-2.5-flash")[0], `"inlineData":{"data":"`+data[:64])
	require.Contains(t, s.of(speaks)[1], `"input_audio":{"data":"`+data[:64])
	require.Contains(t, s.of(speaks)[1], `"format":"wav"`)
}

func fetchAsset(t *testing.T, url string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	require.Equal(t, http.StatusOK, res.StatusCode)
	var b bytes.Buffer
	_, err = b.ReadFrom(res.Body)
	require.NoError(t, err)
	return b.Bytes()
}

// OpenWOP envelope contract §16.3: a node with a picture or a sound needs a model that sees or hears.
// It is refused before it starts, without a call.
func TestMedia_IsGatedByTheCapabilityOfTheModel(t *testing.T) {
	t.Parallel()
	s := openStudio(t)
	for _, tc := range []struct{ id, kind, provider, made, model, missing string }{
		{"blind", "media.image", "gemini", paints, speaks, "vision-input"},
		{"deaf", "media.audio", "openai", speaks, "gpt-4o-mini", "audio-input"},
	} {
		_, events := s.run(t, s.client, flow(tc.id, makes(tc.kind, tc.provider, tc.made), looksAt("look0", "openai", tc.model, "output")), `{"workflowId":"`+tc.id+`"}`)
		insufficient := of(events, "model.capability.insufficient")
		require.Len(t, insufficient, 1, "%s", dump(events))
		require.JSONEq(t, `{"nodeId":"look0","provider":"openai","model":"`+tc.model+`","missingCapabilities":["`+tc.missing+`"],"fallbackAttempted":false}`, string(insufficient[0].Payload))
		require.Equal(t, "run.failed", events[len(events)-1].Type)
		require.Contains(t, string(events[len(events)-1].Payload), "capability_not_provided")
		require.Len(t, of(events, started), 1, "the node does not start")
	}
	require.Empty(t, s.of("gpt-4o-mini"))
	require.Len(t, s.of(speaks), 1, "the call that speaks")
}

// OpenWOP envelope contract §17, media-asset-url-tenant-scoped: the asset of another tenant, or of a run
// that is not related, does not exist for a run. A fork has those of its source.
func TestMedia_AnAssetBelongsToItsRun(t *testing.T) {
	t.Parallel()
	s := openStudio(t, "--max-inline-media-bytes", "1000")
	id, events := s.run(t, s.client, flow("look", makes("media.image", "gemini", paints), looksAt("look0", "openai", "gpt-4o-mini", "output")), `{"workflowId":"look"}`)
	made := outputsOf(t, events, "make")["output"]
	var asset struct{ URL string }
	require.NoError(t, json.Unmarshal(made, &asset))

	const shown = `{"id":"shown","name":"n","version":"1","edges":[],"triggers":[],"variables":[{"name":"picture","type":"object","required":true}],"metadata":{},"settings":{},"nodes":[%s]}`
	look := fmt.Sprintf(shown, node("look", "core.ai.callPrompt", `{"prompt":"What is {{picture}}?","provider":"openai","model":"gpt-4o-mini","expectsStreaming":false}`, "{}"))
	for name, tc := range map[string]struct{ key, value, code string }{
		"another run":     {apiKey, string(made), "not_found"},
		"another tenant":  {quietKey, string(made), "not_found"},
		"a forged token":  {apiKey, `{"bytes":1,"mimeType":"image/png","url":"` + asset.URL + `x"}`, "not_found"},
		"another address": {apiKey, `{"bytes":1,"mimeType":"image/png","url":"https://evil.example/v1/assets/a.b"}`, "validation_error"},
		"no type":         {apiKey, `{"bytes":3,"base64":"AQID"}`, "validation_error"},
	} {
		c := s.host.Client(tc.key)
		_, events := s.run(t, c, look, `{"workflowId":"shown","inputs":{"picture":`+tc.value+`}}`)
		require.Equal(t, "run.failed", events[len(events)-1].Type, name)
		require.Contains(t, string(events[len(events)-1].Payload), `"`+tc.code+`"`, name)
	}
	require.Len(t, s.of("gpt-4o-mini"), 1, "no such node calls its model")

	done := of(events, completed)[0].Sequence + 1
	a, err := s.client.Do(within(t, 30*time.Second), http.MethodPost, "/v1/runs/"+id+":fork", fmt.Sprintf(`{"mode":"branch","fromSeq":%d}`, done))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var fork struct{ RunID string }
	require.NoError(t, a.JSON(&fork))
	events = finish(t, s.client, fork.RunID)
	require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
	require.Len(t, s.of("gpt-4o-mini"), 2)
}

// A picture that a prompt names is a part of the message. Its place in the text has a mark, so that no
// prompt contains base64 or an address of the host.
func TestMedia_APictureInAPromptIsAPart(t *testing.T) {
	t.Parallel()
	s := openStudio(t)
	data := base64.StdEncoding.EncodeToString(picture)
	doc := `{"id":"named","name":"n","version":"1","edges":[],"triggers":[],"variables":[{"name":"picture","type":"object","required":true}],"metadata":{},"settings":{},"nodes":[` +
		node("look", "core.ai.callPrompt", `{"prompt":"Compare {{picture}} with the last one.","provider":"openai","model":"gpt-4o-mini","expectsStreaming":false}`, "{}") + `]}`
	_, events := s.run(t, s.client, doc, fmt.Sprintf(`{"workflowId":"named","inputs":{"picture":{"bytes":%d,"mimeType":"image/png","alt":"a lamp","base64":%q}}}`, len(picture), data))
	require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
	var sent struct {
		Messages []struct{ Content []struct{ Type, Text string } }
	}
	require.NoError(t, json.Unmarshal([]byte(s.of("gpt-4o-mini")[0]), &sent))
	parts := sent.Messages[len(sent.Messages)-1].Content
	require.Len(t, parts, 2)
	require.Equal(t, "Compare [image 1: a lamp] with the last one.", parts[0].Text)
	require.Equal(t, "image_url", parts[1].Type)
}

// A dispatcher that takes over after a kill reads the asset again: the log has its reference.
func TestMedia_SurvivesAKillDuringTheCall(t *testing.T) {
	t.Parallel()
	s := openStudio(t, "--max-inline-media-bytes", "1000", "--lease", "1s")
	s.hold.Store(true)
	doc := flow("look", makes("media.image", "gemini", paints), looksAt("look0", "openai", "gpt-4o-mini", "output"))
	a, err := s.client.Do(within(t, 30*time.Second), http.MethodPost, "/v1/workflows", doc)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	id := start(t, s.client, `{"workflowId":"look"}`)
	require.Eventually(t, func() bool { return len(s.of("gpt-4o-mini")) == 1 }, 30*time.Second, 10*time.Millisecond)
	s.host.Kill()
	s.host.Launch()
	events := finish(t, s.host.Client(apiKey), id)
	require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
	calls := s.of("gpt-4o-mini")
	require.Len(t, calls, 2)
	require.Contains(t, calls[1], base64.StdEncoding.EncodeToString(picture))
	require.Len(t, s.of(paints), 1)
}
