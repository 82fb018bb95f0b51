package model_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
)

// picky is a model server that refuses forms of schemas.
type picky struct {
	refuses map[string]string // the body of the refusal by form
	status  int               // of a refusal; 0 means 400
	answers []string          // in order; the last one repeats

	mu     sync.Mutex
	forms  []string // of the requests
	bodies []string
	keys   []string // idempotency keys
}

// formOf returns the form of a request's schema.
func formOf(body []byte) string {
	var r struct {
		ResponseFormat struct{ Type string } `json:"response_format"`
		Tools          []json.RawMessage
		Messages       []struct{ Content string }
	}
	_ = json.Unmarshal(body, &r)
	switch {
	case len(r.Tools) > 0:
		return "tool"
	case r.ResponseFormat.Type != "":
		return r.ResponseFormat.Type
	case strings.Contains(r.Messages[0].Content, "JSON Schema of the document"):
		return "words"
	}
	return "none"
}

func (s *picky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form := formOf(body)
	s.mu.Lock()
	s.forms = append(s.forms, form)
	s.bodies = append(s.bodies, string(body))
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	refusal, refused := s.refuses[form]
	answer := ""
	if !refused {
		answer = s.answers[0]
		if len(s.answers) > 1 {
			s.answers = s.answers[1:]
		}
	}
	s.mu.Unlock()
	if refused {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(max(s.status, http.StatusBadRequest))
		_, _ = io.WriteString(w, refusal)
		return
	}
	text, _ := json.Marshal(answer)
	delta := fmt.Sprintf(`{"content":%s}`, text)
	if form == "tool" {
		var sent struct {
			Tools []struct{ Function struct{ Name string } }
		}
		_ = json.Unmarshal(body, &sent)
		delta = fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c","function":{"name":%q,"arguments":%s}}]}`, sent.Tools[0].Function.Name, text)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":%s,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n", delta)
}

// asked returns the forms of the requests since the last call.
func (s *picky) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := strings.Join(s.forms, " ")
	s.forms = nil
	return out
}

// pickyHost is a loop that calls a picky server.
type pickyHost struct {
	*model.Loop

	now time.Time
	log bytes.Buffer
}

func newPickyHost(t *testing.T, s *picky) *pickyHost {
	t.Helper()
	return newPickyHostOf(t, s, compat.Config{})
}

func newPickyHostOf(t *testing.T, s *picky, c compat.Config) *pickyHost {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c.ID, c.BaseURL = "box", server.URL
	p, err := compat.New(c)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	h := &pickyHost{now: time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)}
	h.Loop = model.New(model.Config{
		MaxAttempts: 3,
		Multiplier:  2,
		Defaults:    model.Defaults{Provider: "box", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Models:  reg,
		Schemas: manyRounds{},
		Clock:   func() time.Time { return h.now },
		Logger:  slog.New(slog.NewTextHandler(&h.log, nil)),
	})
	return h
}

const ticketConfig = `{"prompt":"p","outputSchema":{"type":"object","required":["valid"],"properties":{"valid":{"type":"boolean"}}}}`

func (h *pickyHost) ask(t *testing.T, config string) rig {
	t.Helper()
	j := &journal{accept: acceptAll}
	res := h.Run(t.Context(), model.Task{
		Tenant: "acme",
		RunID:  "run_1",
		TypeID: node.TypeStructuredOutput,
		Input:  node.Input{NodeID: "n", Config: json.RawMessage(config)},
	}, j)
	return rig{journal: j, result: res}
}

const (
	noFormat = `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error"}}`
	noTools  = `{"error":"registry/model does not support tools"}`
	noObject = `{"detail":[{"loc":["body","response_format"],"msg":"extra fields not permitted"}]}`
)

// A server that refuses a form of the schema is called with the next one, within one attempt.
func TestForms_StepDownUntilTheServerAccepts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server *picky
		asked  string
		form   string
	}{
		"json_schema":          {&picky{}, "json_schema", ""},
		"a tool":               {&picky{refuses: map[string]string{"json_schema": noFormat}}, "json_schema tool", "tool"},
		"a JSON object":        {&picky{refuses: map[string]string{"json_schema": noFormat, "tool": noTools}}, "json_schema tool json_object", "json_object"},
		"words":                {&picky{refuses: map[string]string{"json_schema": noFormat, "tool": noTools, "json_object": noObject}}, "json_schema tool json_object words", "words"},
		"not built (501)":      {&picky{status: 501, refuses: map[string]string{"json_schema": noFormat}}, "json_schema tool", "tool"},
		"a grammar fails, 500": {&picky{status: 500, refuses: map[string]string{"json_schema": `{"error":{"code":500,"message":"failed to parse grammar"}}`}}, "json_schema tool", "tool"},
		"no endpoint with it":  {&picky{status: 404, refuses: map[string]string{"json_schema": `{"error":{"message":"No endpoints found that can handle the requested parameters."}}`}}, "json_schema tool", "tool"},
		"a validator's text":   {&picky{status: 422, refuses: map[string]string{"json_schema": noObject}}, "json_schema tool", "tool"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.server.answers = []string{`{"valid":true}`}
			h := newPickyHost(t, tc.server)
			r := h.ask(t, ticketConfig)
			require.Nil(t, r.result.Err)
			require.JSONEq(t, `{"valid":true}`, string(r.result.Output.Ports["output"]))
			require.Equal(t, tc.asked, tc.server.asked())
			if tc.form == "" {
				require.Equal(t, "provider.usage", r.names())
				return
			}
			require.Equal(t, "log.appended provider.usage", r.names(), "one answer, one usage")
			var p struct {
				Level, NodeID string
				Fields        struct {
					Reason, SchemaForm string
					Refused            []string
				}
			}
			require.NoError(t, json.Unmarshal([]byte(r.payload(t, wire.EventLogAppended)), &p))
			require.Equal(t, wire.ReasonSchemaForm, p.Fields.Reason)
			require.Equal(t, tc.form, p.Fields.SchemaForm)
			require.Equal(t, strings.Fields(tc.asked)[:len(p.Fields.Refused)], p.Fields.Refused)
			require.Contains(t, h.log.String(), "schema form refused")
			require.Contains(t, h.log.String(), "next="+tc.form)

			require.Nil(t, h.ask(t, ticketConfig).result.Err)
			require.Equal(t, tc.form, tc.server.asked(), "the form is remembered")
			h.now = h.now.Add(time.Hour)
			require.Nil(t, h.ask(t, ticketConfig).result.Err)
			require.Equal(t, tc.asked, tc.server.asked(), "for an hour")
		})
	}
}

// The requests of the forms differ, so a server that stores answers must not mix them up. Another
// dispatcher sends the same ones.
func TestForms_HaveInvocationIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := &picky{refuses: map[string]string{"json_schema": noFormat}, answers: []string{`{"valid":true}`}}
	require.Nil(t, newPickyHost(t, s).ask(t, ticketConfig).result.Err)
	require.Nil(t, newPickyHost(t, s).ask(t, ticketConfig).result.Err)
	require.Equal(t, "json_schema tool json_schema tool", s.asked())
	require.NotEqual(t, s.keys[0], s.keys[1])
	require.Equal(t, s.keys[:2], s.keys[2:])
}

// Step-downs use up no attempt: all three remain for the answers.
func TestForms_UseUpNoAttempt(t *testing.T) {
	t.Parallel()
	s := &picky{
		refuses: map[string]string{"json_schema": noFormat, "tool": noTools, "json_object": noObject},
		answers: []string{`{"valid":1}`, `{"valid":2}`, `{"valid":true}`},
	}
	r := newPickyHost(t, s).ask(t, ticketConfig)
	require.Nil(t, r.result.Err)
	require.Equal(t, "json_schema tool json_object words words words", s.asked())
	require.Equal(t, 2, strings.Count(r.names(), "envelope.retry.attempted"))
	require.NotContains(t, r.names(), "cap.breached")
}

// A schema whose values need not be objects is not sent as the format of objects.
func TestForms_SkipObjectsForOtherSchemas(t *testing.T) {
	t.Parallel()
	s := &picky{refuses: map[string]string{"json_schema": noFormat, "tool": noTools}, answers: []string{`[1]`}}
	r := newPickyHost(t, s).ask(t, `{"prompt":"p","outputSchema":{"type":"array","items":{"type":"integer"}}}`)
	require.Nil(t, r.result.Err)
	require.JSONEq(t, `[1]`, string(r.result.Output.Ports["output"]))
	require.Equal(t, "json_schema tool words", s.asked())
}

// In words the model gets the author's schema, not the vendor's dialect of it, and its answer is not
// converted back.
func TestForms_SendTheAuthorsSchemaInWords(t *testing.T) {
	t.Parallel()
	const config = `{"prompt":"p","outputSchema":{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string","pattern":"^x"}}}}`
	s := &picky{
		refuses: map[string]string{"json_schema": noFormat, "tool": noTools, "json_object": noObject},
		answers: []string{`{"a":"null"}`},
	}
	r := newPickyHost(t, s).ask(t, config)
	require.Nil(t, r.result.Err)
	require.JSONEq(t, `{"a":"null"}`, string(r.result.Output.Ports["output"]))
	require.Contains(t, s.bodies[len(s.bodies)-1], `\"pattern\":\"^x\"`)
}

// Other errors are the call's, in whatever form it is.
func TestForms_OtherErrorsFailTheCall(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		code   string
	}{
		"a wrong request": {400, `{"error":{"message":"temperature must be below 2"}}`, provider.CodeInvalidRequest},
		"an outage":       {500, `{"error":{"message":"out of memory"}}`, provider.CodeUnavailable},
		"no capacity":     {503, `{"error":{"message":"json_schema worker is overloaded"}}`, provider.CodeUnavailable},
		"a wrong message": {400, `{"error":{"message":"Request body does not match schema: messages[1].content must be a string"}}`, provider.CodeInvalidRequest},
		"another schema":  {422, `{"error":{"message":"Request validation against the schema failed at /model"}}`, provider.CodeInvalidRequest},
		"a wrong key":     {401, `{"error":{"message":"response_format"}}`, provider.CodeCredentialRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &picky{status: tc.status, refuses: map[string]string{"json_schema": tc.body}}
			r := newPickyHost(t, s).ask(t, ticketConfig)
			require.NotNil(t, r.result.Err)
			require.Equal(t, tc.code, r.result.Err.Code)
			require.Equal(t, "json_schema", s.asked())
		})
	}
}

// A refusal is not remembered if no other form is answered: then it was not about the form.
func TestForms_AreNotRememberedWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := &picky{
		refuses: map[string]string{"json_schema": noFormat, "tool": `{"error":{"message":"temperature must be below 2"}}`},
		answers: []string{`{"valid":true}`},
	}
	h := newPickyHost(t, s)
	r := h.ask(t, ticketConfig)
	require.NotNil(t, r.result.Err)
	require.Equal(t, provider.CodeInvalidRequest, r.result.Err.Code)
	require.Equal(t, "json_schema tool", s.asked())
	s.refuses = nil
	r = h.ask(t, ticketConfig)
	require.Nil(t, r.result.Err)
	require.Equal(t, "json_schema", s.asked(), "the strictest form is tried again")
	require.Equal(t, "provider.usage", r.names())
}

// A vendor that is known to have its forms refuses a schema, not the form: others are sent strictly.
func TestForms_OfAVendorAreRememberedBySchema(t *testing.T) {
	t.Parallel()
	s := &picky{refuses: map[string]string{"json_schema": `{"error":{"code":"invalid_json_schema","message":"too complex"}}`}, answers: []string{`{"valid":true}`}}
	h := newPickyHostOf(t, s, compat.Config{Dialect: compat.DialectOpenAI, APIKey: "sk-0001"})
	const other = `{"prompt":"p","outputSchema":{"type":"object","required":["valid"],"properties":{"valid":{"type":"boolean"},"more":{"type":"string"}}}}`
	for _, config := range []string{ticketConfig, ticketConfig, other} {
		require.Nil(t, h.ask(t, config).result.Err)
	}
	require.Equal(t, "json_schema tool tool json_schema tool", s.asked())
}

// A server of the operator is remembered by its model, whatever the schema and the tenant.
func TestForms_OfOwnServersAreRememberedByModel(t *testing.T) {
	t.Parallel()
	s := &picky{refuses: map[string]string{"json_schema": noFormat}, answers: []string{`{"valid":true}`}}
	h := newPickyHost(t, s)
	const other = `{"prompt":"p","model":"m","outputSchema":{"type":"object","required":["valid"]}}`
	for _, config := range []string{ticketConfig, other, strings.Replace(other, `"m"`, `"n"`, 1)} {
		require.Nil(t, h.ask(t, config).result.Err)
	}
	require.Equal(t, "json_schema tool tool json_schema tool", s.asked())
}
