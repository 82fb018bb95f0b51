package vertex_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	"waybill.dev/waybill/services/dispatcher/provider/vertex"
	double "waybill.dev/waybill/test/double/vertex"
)

const (
	geminiModel = "gemini-2.5-flash"
	claudeModel = "claude-sonnet-4-5@20250929"
)

// TestMain hides the credentials of the machine.
func TestMain(m *testing.M) {
	for _, name := range []string{"GOOGLE_CLOUD_PROJECT", "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_LOCATION"} {
		_ = os.Unsetenv(name)
	}
	_ = os.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent/credentials.json")
	goleak.VerifyTestMain(m)
}

const (
	geminiAnswer = `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"one "}]}}],"modelVersion":"gemini-x"}` + "\r\n\r\n" +
		`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"two"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"thoughtsTokenCount":3,"cachedContentTokenCount":2,"totalTokenCount":16}}` + "\r\n\r\n"
	claudeAnswer = `event: message_start` + "\n" + `data: {"type":"message_start","message":{"model":"claude-x","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}` + "\n\n" +
		`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one "}}` + "\n\n" +
		`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"two"}}` + "\n\n" +
		`event: content_block_stop` + "\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
		`event: message_delta` + "\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}` + "\n\n" +
		`event: message_stop` + "\n" + `data: {"type":"message_stop"}` + "\n\n"
)

// answers are the answers of the two vendors' models.
var answers = map[string]string{geminiModel: geminiAnswer, claudeModel: claudeAnswer}

func ask(model string) provider.Request { return providertest.Ask(model, "private words") }

func TestProvider_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	for model, answer := range answers {
		t.Run(model, func(t *testing.T) { //nolint:paralleltest // as above
			providertest.Run(t, func(t *testing.T) provider.Provider {
				t.Helper()
				return open(t, newDouble(t, reply{Body: answer}), nil)
			}, providertest.Options{Request: ask(model), Stalls: func(t *testing.T) provider.Provider {
				t.Helper()
				at := strings.Index(answer, `"one "`)
				end := at + strings.IndexByte(answer[at:], '\n') // of the line
				return open(t, newDouble(t, reply{Body: answer[:end] + "\n\n", Stall: true}), nil)
			}})
		})
	}
}

func TestCall_SaysTheRequestInTheVendorsWords(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"string"}}}`)
	for model, tc := range map[string]struct {
		path, query string
		usage       provider.Usage
		has, lacks  []string
	}{
		geminiModel: {
			path:  "/gw/v1beta1/projects/desk-1/locations/europe-west4/publishers/google/models/gemini-2.5-flash:streamGenerateContent",
			query: "alt=sse&trace=1",
			usage: provider.Usage{
				InputTokens: 9, OutputTokens: 7, TotalTokens: 16, CacheReadTokens: 2, ReasoningTokens: new(3), Known: true,
			},
			has: []string{"contents", "generationConfig", "labels"},
		},
		claudeModel: {
			path:  "/gw/v1/projects/desk-1/locations/europe-west4/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
			query: "trace=1",
			usage: provider.Usage{InputTokens: 9, OutputTokens: 7, TotalTokens: 16, CacheApart: true, Known: true},
			has:   []string{"messages", "anthropic_version", "stream", "output_config", "labels"},
			lacks: []string{"model"},
		},
	} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, reply{Body: answers[model]})
			p := open(t, d, func(c *vertex.Config) {
				c.Server.BaseURL += "/gw"
				c.Server.Extras = outbound.Extras{
					Query:   map[string]string{"trace": "1"},
					Headers: map[string]provider.Secret{"X-Team": "desk"},
					Body:    map[string]json.RawMessage{"labels": json.RawMessage(`{"team":"desk"}`)},
				}
			})
			req := ask(model)
			req.Schema, req.SchemaName = schema, "answer"
			res, _ := providertest.Answer(t, p, req)
			require.Equal(t, "one two", res.Text)
			require.Equal(t, tc.usage, res.Usage)
			require.Equal(t, tc.path, d.Last().Path)
			require.Equal(t, tc.query, d.Last().Query)
			require.Equal(t, "desk", d.Last().Header.Get("X-Team"))
			require.Empty(t, d.Last().Header.Get("X-Goog-Api-Key"))
			require.Empty(t, d.Last().Header.Get("X-Api-Key"))
			for _, name := range tc.has {
				require.Contains(t, d.Last().Members, name)
			}
			for _, name := range tc.lacks {
				require.NotContains(t, d.Last().Members, name)
			}
			sent := string(d.Last().Members["generationConfig"]) + string(d.Last().Members["output_config"])
			require.Contains(t, sent, `{"b":{"type":"string"},"a":`, "the author's order of properties")
		})
	}
}

// A token is used until it is about to expire.
func TestCall_ReusesItsToken(t *testing.T) {
	t.Parallel()
	d := newDouble(t, reply{Body: geminiAnswer})
	p := open(t, d, nil)
	for range 3 {
		providertest.Answer(t, p, ask(geminiModel))
	}
	require.Equal(t, 1, d.Issued())
	d.answerWith(claudeAnswer)
	providertest.Answer(t, p, ask(claudeModel))
	require.Equal(t, 1, d.Issued(), "both SDKs use it")

	short := newDoubleOf(t, reply{Body: geminiAnswer}, time.Second)
	p = open(t, short, nil)
	for range 3 {
		providertest.Answer(t, p, ask(geminiModel))
	}
	require.Eventually(t, func() bool { return short.Issued() > 1 }, 30*time.Second, time.Millisecond, "a new one is fetched in time")
}

func TestCall_ReportsWhyThereIsNoToken(t *testing.T) {
	t.Parallel()
	other := double.NewKey()
	for model := range answers {
		d := newDouble(t, reply{})
		e := failure(t, open(t, d, func(c *vertex.Config) { c.Credentials = credentialsAt(d.URL, other) }), ask(model))
		require.Equal(t, provider.CodeCredentialRequired, e.Code)
		require.Contains(t, e.Message, "no access token")
		require.False(t, e.Retryable)

		gone := newDouble(t, reply{})
		gone.Close()
		e = failure(t, open(t, d, func(c *vertex.Config) { c.Credentials = credentialsAt(gone.URL, double.AccountKey()) }), ask(model))
		require.Equal(t, provider.CodeUnavailable, e.Code)
		require.Contains(t, e.Message, "server of access tokens")
		require.True(t, e.Retryable)
	}
}

func TestCall_AcceptsNoKeyOfATenant(t *testing.T) {
	t.Parallel()
	d := newDouble(t, reply{Body: geminiAnswer})
	req := ask(geminiModel)
	req.Credential = "key-of-a-tenant"
	e := failure(t, open(t, d, nil), req)
	require.Equal(t, "credential_forbidden", e.Code)
	require.Zero(t, d.Issued())
}

func TestCall_ClassifiesErrors(t *testing.T) {
	t.Parallel()
	google := func(code int, status, message string) reply {
		return reply{Status: code, Label: "application/json", Body: `[{"error":{"code":` + strconv.Itoa(code) + `,"message":"` + message + `","status":"` + status + `"}}]`}
	}
	for name, tc := range map[string]struct {
		reply
		code                string
		retryable, capacity bool
	}{
		"no permission": {google(403, "PERMISSION_DENIED", "Permission 'aiplatform.endpoints.predict' denied"), provider.CodeCredentialRequired, false, false},
		"no model":      {google(404, "NOT_FOUND", "Publisher Model was not found"), provider.CodeModelNotSupported, false, false},
		"rate limit":    {google(429, "RESOURCE_EXHAUSTED", "Resource exhausted"), provider.CodeQuota, true, true},
		"bad request":   {google(400, "INVALID_ARGUMENT", "temperature must be below 2"), provider.CodeInvalidRequest, false, false},
		"server error":  {google(500, "INTERNAL", "boom"), provider.CodeUnavailable, true, false},
		"unavailable":   {google(503, "UNAVAILABLE", "busy"), provider.CodeUnavailable, true, true},
		"a page":        {reply{Status: 502, Label: "text/html", Body: "<html>"}, provider.CodeUnavailable, true, false},
		"an echo":       {google(400, "INVALID_ARGUMENT", "odd header: $TOKEN"), provider.CodeInvalidRequest, false, false},
		"nothing":       {reply{}, provider.CodeUnavailable, true, false},
	} {
		for model := range answers {
			t.Run(name+", "+model, func(t *testing.T) {
				t.Parallel()
				e := failure(t, open(t, newDouble(t, tc.reply), nil), ask(model))
				require.Equal(t, tc.code, e.Code, e.Message)
				require.Equal(t, tc.retryable, e.Retryable, e.Message)
				require.Equal(t, tc.capacity, e.Capacity, e.Message)
				require.NotContains(t, e.Message, "could not be reached")
			})
		}
	}
}

func TestCall_RefusesNamesThatAreNoModels(t *testing.T) {
	t.Parallel()
	d := newDouble(t, reply{})
	for _, name := range []string{"gemini/../x", "claude/../../x", "claude x", "claude:predict", "gemini?x"} {
		e := failure(t, open(t, d, nil), ask(name))
		require.Equal(t, provider.CodeModelNotSupported, e.Code, name)
		require.Zero(t, e.Status, name)
	}
}

func TestProvider_HasTheFormsOfTheModelsVendor(t *testing.T) {
	t.Parallel()
	p := open(t, newDouble(t, reply{}), nil)
	require.Equal(t, "vertex", p.ID())
	require.Equal(t, projection.Gemini, p.Dialect(geminiModel))
	require.Equal(t, projection.Anthropic, p.Dialect(claudeModel))
	require.Contains(t, p.SchemaForms(geminiModel), provider.ViaObject)
	require.NotContains(t, p.SchemaForms(claudeModel), provider.ViaObject)
}

func TestNew_NamesFieldValueAndRemedy(t *testing.T) {
	t.Parallel()
	good := credentialsAt("http://127.0.0.1:1", double.AccountKey())
	for want, cfg := range map[string]vertex.Config{
		"key: want Google's credentials":          {},
		"want Google's credentials: set key":      {Credentials: "AIza-no-document"},
		`google.location: "EU/..": want global`:   {Credentials: good, Location: "EU/.."},
		`google.project: "a/b": want the id of a`: {Credentials: good, Project: "a/b"},
		"baseUrl: \"http://h/v1\": must not end":  {Credentials: good, Server: outbound.Server{BaseURL: "http://h/v1"}},
		"google.project: missing; set it":         {Credentials: `{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"}`},
	} {
		_, err := vertex.New(cfg)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "PRIVATE")
		require.NotContains(t, err.Error(), "no-document")
	}
}

// Without a key, Google's default chain has the credentials and the project.
func TestCall_UsesTheDefaultChain(t *testing.T) { //nolint:paralleltest // sets the environment
	d := newDouble(t, reply{Body: geminiAnswer})
	file := filepath.Join(t.TempDir(), "key.json")
	require.NoError(t, os.WriteFile(file, []byte(credentialsAt(d.URL, double.AccountKey())), 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	t.Setenv("GOOGLE_API_KEY", "a-key-for-other-programs")
	t.Setenv("GOOGLE_CLOUD_PROJECT", "desk-2")
	p := open(t, d, func(c *vertex.Config) { c.Credentials = "" })
	providertest.Answer(t, p, ask(geminiModel))
	require.Contains(t, d.Last().Path, "/projects/desk-2/")
	require.Empty(t, d.Last().Header.Get("X-Goog-Api-Key"))
}
