package compat_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	"waybill.dev/waybill/test/double/openaicompat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-hush-0123"

// rig is a provider and the server it speaks to.
type rig struct {
	*compat.Provider
	server *openaicompat.Server
}

func newRig(t *testing.T, edit func(*compat.Config)) rig {
	t.Helper()
	s := openaicompat.New(openaicompat.Options{Key: key})
	c := compat.Config{BaseURL: s.URL(), APIKey: key, Timeout: 10 * time.Second}
	if edit != nil {
		edit(&c)
	}
	p, err := compat.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Close()
		p.Close()
	})
	return rig{Provider: p, server: s}
}

func ask() provider.Request { return providertest.Ask(openaicompat.DefaultModel, "private words") }

func (r rig) call(t *testing.T, req provider.Request, replies ...openaicompat.Reply) (provider.Result, []provider.Delta) {
	t.Helper()
	r.server.Enqueue(replies...)
	return providertest.Answer(t, r, req)
}

// fail calls, wants an *Error, and checks that it repeats nothing it must not.
func (r rig) fail(t *testing.T, replies ...openaicompat.Reply) *provider.Error {
	t.Helper()
	r.server.Enqueue(replies...)
	return providertest.Failure(t, r, ask(), "hush", "private words", "vendor says")
}

func (r rig) lastBody(t *testing.T) map[string]any {
	t.Helper()
	all := r.server.Requests()
	var body map[string]any
	require.NoError(t, json.Unmarshal(all[len(all)-1].Body, &body))
	return body
}

func TestProvider_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	open := func(t *testing.T) provider.Provider { return newRig(t, nil) }
	providertest.Run(t, open, providertest.Options{
		Request: ask(),
		Stalls: func(t *testing.T) provider.Provider {
			r := newRig(t, nil)
			r.server.Enqueue(openaicompat.Reply{Pieces: []string{"a", "b"}, End: openaicompat.EndStall})
			return r
		},
	})
}

func TestCall_SaysTheRequestInTheVendorsWords(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	temperature, topP, seed := 0.0, 0.5, int64(7)
	r.call(t, provider.Request{
		Provider: "compat",
		Model:    openaicompat.DefaultModel,
		System:   "be <brief>",
		Messages: []provider.Message{
			{Role: "user", Content: json.RawMessage(`[{"type":"text","text":"a<b"}]`)},
			{Role: "assistant", Content: json.RawMessage(`"yes"`)},
		},
		Schema:       json.RawMessage(`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z","a"],"additionalProperties":false}`),
		SchemaName:   "vendor_waybill_x-1",
		MaxTokens:    50,
		Temperature:  &temperature,
		TopP:         &topP,
		Seed:         &seed,
		Stop:         []string{"END"},
		NodeID:       "secret-node",
		InvocationID: "inv:1",
	})
	rec := r.server.Requests()[0]
	require.Equal(t, 200, rec.Status)
	require.JSONEq(t, `{
		"model":"gpt-double","stream":true,"stream_options":{"include_usage":true},
		"messages":[{"role":"system","content":"be <brief>"},{"role":"user","content":[{"type":"text","text":"a<b"}]},{"role":"assistant","content":"yes"}],
		"response_format":{"type":"json_schema","json_schema":{"name":"vendor_waybill_x-1","strict":true,
			"schema":{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z","a"],"additionalProperties":false}}},
		"max_tokens":50,"temperature":0,"top_p":0.5,"seed":7,"stop":["END"]}`, string(rec.Body))
	body := string(rec.Body)
	require.Less(t, strings.Index(body, `"z"`), strings.Index(body, `"a"`), "the schema keeps its order")
	require.NotContains(t, body, "secret-node")
	require.Equal(t, "inv:1", rec.Header.Get("Idempotency-Key"))
	require.Equal(t, "Bearer "+key, rec.Header.Get("Authorization"))
}

func TestCall_LeavesOutWhatIsNotAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.call(t, ask())
	body := r.lastBody(t)
	require.Len(t, body, 4, "model, messages, stream and stream_options alone: %v", body)
	require.Empty(t, r.server.Requests()[0].Header.Get("Idempotency-Key"))
}

func TestCall_NamesASchemaThatHasNoName(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	req := ask()
	req.Schema = json.RawMessage(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`)
	r.call(t, req)
	require.Contains(t, string(r.server.Requests()[0].Body), `"name":"answer"`)
}

func TestCall_DigestsIDsThatNoHeaderCarries(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, id := range []string{"run:ü:1", "a\r\nX-Evil: 1", strings.Repeat("x", 300)} {
		req := ask()
		req.InvocationID = id
		r.call(t, req)
		all := r.server.Requests()
		require.Regexp(t, `^[0-9a-f]{64}$`, all[len(all)-1].Header.Get("Idempotency-Key"))
		require.Empty(t, all[len(all)-1].Header.Get("X-Evil"))
	}
}

// What OPENAI_* and proxy variables say is meant for others.
func TestCall_TakesNothingFromTheEnvironment(t *testing.T) { //nolint:paralleltest // sets the environment
	t.Setenv("OPENAI_API_KEY", "sk-env")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
	t.Setenv("OPENAI_ORG_ID", "org-env")
	t.Setenv("OPENAI_PROJECT_ID", "proj-env")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	s := openaicompat.New(openaicompat.Options{})
	defer s.Close()
	p, err := compat.New(compat.Config{BaseURL: s.URL() + "/"})
	require.NoError(t, err)
	defer p.Close()
	_, err = p.Call(t.Context(), ask(), nil)
	require.NoError(t, err)
	h := s.Requests()[0].Header
	require.NotContains(t, h, "Authorization", "no key is configured")
	require.NotContains(t, h, "Openai-Organization")
	require.NotContains(t, h, "Openai-Project")
}

func TestCall_EmitsOnePieceForEachChunkOfText(t *testing.T) {
	t.Parallel()
	res, pieces := newRig(t, nil).call(t, ask(), openaicompat.Reply{
		Pieces: []string{"a", "ü", "c"},
		Model:  "gpt-double-2026",
		Usage:  &openaicompat.Usage{Prompt: 9, Completion: 3, Cached: 4},
	})
	require.Len(t, pieces, 4, "and the end")
	require.Equal(t, "aüc", res.Text)
	require.Equal(t, "gpt-double-2026", res.Model)
	require.Equal(t, provider.Usage{
		InputTokens:     9,
		OutputTokens:    3,
		TotalTokens:     12,
		CacheReadTokens: 4,
		Known:           true,
	}, res.Usage)
	require.Equal(t, "stop", pieces[3].FinishReason)
}

// A piece does not wait for the end of the answer.
func TestCall_EmitsWhileTheAnswerArrives(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.server.Enqueue(openaicompat.Reply{Pieces: []string{"a", "b"}, End: openaicompat.EndStall})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got string
	_, err := r.Call(ctx, ask(), func(d provider.Delta) error {
		got += d.Text
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, []string{"a", "ab"}, got, "and it does not wait for the end")
}

// OpenWOP envelope contract §14.1, the rows of OpenAI.
func TestCall_ClassifiesHowTheAnswerEnded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reply                          openaicompat.Reply
		stop                           provider.StopClass
		raw, finish, refusal, category string
	}{
		{openaicompat.Reply{Pieces: []string{"a"}}, provider.StopClean, "stop", "stop", "", ""},
		{openaicompat.Reply{}, provider.StopClean, "stop", "stop", "", ""},
		{
			openaicompat.Reply{Pieces: []string{"a"}, FinishReason: "length"},
			provider.StopTruncated, "length", "length", "", "",
		},
		{
			openaicompat.Reply{FinishReason: "content_filter"},
			provider.StopRefused, "content_filter", "content_filter", "", "content_filter",
		},
		{
			openaicompat.Reply{Refusal: "I will not do that"},
			provider.StopRefused, "stop", "content_filter", "I will not do that", "",
		},
		{openaicompat.Reply{Pieces: []string{"a"}, FinishReason: "meteor"}, provider.StopUnknown, "meteor", "", "", ""},
		{
			openaicompat.Reply{ToolCalls: []openaicompat.ToolCall{{ID: "1", Name: "f", Arguments: "{}"}}},
			provider.StopUnknown, "tool_calls", "tool_calls", "", "",
		},
	} {
		res, pieces := newRig(t, nil).call(t, ask(), tc.reply)
		require.Equal(t, tc.stop, res.Stop, "%+v", tc.reply)
		require.Equal(t, tc.raw, res.RawStop)
		require.Equal(t, tc.refusal, res.RefusalText)
		require.Equal(t, tc.category, res.SafetyCategory)
		require.Equal(t, tc.finish, pieces[len(pieces)-1].FinishReason)
		require.NotContains(t, res.Text, "will not", "a refusal is no text")
	}
}

func TestCall_PutsToolCallsTogether(t *testing.T) {
	t.Parallel()
	res, _ := newRig(t, nil).call(t, ask(), openaicompat.Reply{
		Pieces: []string{"let me look"},
		ToolCalls: []openaicompat.ToolCall{
			{ID: "c1", Name: "look", Arguments: `{"at":"there"}`}, {ID: "c2", Name: "go", Arguments: `{}`},
		},
	})
	require.Equal(t, []provider.ToolCall{
		{ID: "c1", Name: "look", Arguments: `{"at":"there"}`},
		{ID: "c2", Name: "go", Arguments: `{}`},
	}, res.ToolCalls)
}

func TestCall_DoesNotKnowUsageTheServerDoesNotTell(t *testing.T) {
	t.Parallel()
	res, _ := newRig(t, nil).call(t, ask(), openaicompat.Reply{ContentType: "text/event-stream; charset=utf-8", Raw: "" +
		": keep-alive\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n" +
		`data: {"choices":[{"index":1,"delta":{"content":"another choice"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		"data: [DONE]\n\n"})
	require.Equal(t, "a", res.Text)
	require.False(t, res.Usage.Known)
	require.Equal(t, openaicompat.DefaultModel, res.Model, "the one asked for, when none is named")
}

func TestCall_MapsStatusesToCodes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reply     openaicompat.Reply
		code      string
		retryable bool
	}{
		{openaicompat.Reply{Status: 401}, "credential_required", false},
		{openaicompat.Reply{Status: 403}, "credential_required", false},
		{openaicompat.Reply{Status: 404, Code: "model_not_found"}, "model_not_supported", false},
		{openaicompat.Reply{Status: 400}, provider.CodeInvalidRequest, false},
		{openaicompat.Reply{Status: 422}, provider.CodeInvalidRequest, false},
		{openaicompat.Reply{Status: 400, Param: "response_format"}, "response_schema_invalid", false},
		{openaicompat.Reply{Status: 400, Param: "response_format.json_schema.name"}, "response_schema_invalid", false},
		{openaicompat.Reply{Status: 400, Code: "invalid_json_schema"}, "response_schema_invalid", false},
		{openaicompat.Reply{Status: 400, Code: "context_length_exceeded"}, "content_too_long", false},
		{openaicompat.Reply{Status: 413}, "content_too_long", false},
		{openaicompat.Reply{Status: 429, Code: "rate_limit_exceeded"}, "provider_quota_exhausted", true},
		{openaicompat.Reply{Status: 429, Code: "insufficient_quota"}, "provider_quota_exhausted", false},
		{openaicompat.Reply{Status: 402}, "provider_quota_exhausted", false},
		{openaicompat.Reply{Status: 408}, "provider_unavailable", true},
		{openaicompat.Reply{Status: 409}, "provider_unavailable", true},
		{openaicompat.Reply{Status: 500}, "provider_unavailable", true},
		{openaicompat.Reply{Status: 503}, "provider_unavailable", true},
		{openaicompat.Reply{Status: 529}, "provider_unavailable", true},
	} {
		tc.reply.Message = "vendor says: hush, private words"
		r := newRig(t, nil)
		e := r.fail(t, tc.reply)
		require.Equal(t, tc.code, e.Code, "%+v", tc.reply)
		require.Equal(t, tc.retryable, e.Retryable, "%+v", tc.reply)
		require.Equal(t, tc.reply.Status, e.Status)
		require.Len(t, r.server.Requests(), 1, "the SDK must not retry")
	}
}

func TestCall_TakesAFilteredPromptForARefusal(t *testing.T) {
	t.Parallel()
	res, _ := newRig(t, nil).call(t, ask(), openaicompat.Reply{
		Status:  400,
		Code:    "content_filter",
		Message: "vendor says no",
	})
	require.Equal(t, provider.StopRefused, res.Stop)
	require.Equal(t, "content_filter", res.SafetyCategory)
	require.False(t, res.Usage.Known)
}

func TestCall_KeepsHowLongToWait(t *testing.T) {
	t.Parallel()
	const date = "Wed, 21 Oct 2026 07:28:00 GMT"
	for header, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"0.5":                           500 * time.Millisecond,
		"-1":                            0,
		"soon":                          0,
		"NaN":                           0,
		"1e300":                         24 * time.Hour,
		"Wed, 21 Oct 2026 07:28:30 GMT": 30 * time.Second,
		"Wed, 21 Oct 2026 07:00:00 GMT": 0,
		"Wed, 21 Oct 2099 07:00:00 GMT": 24 * time.Hour,
	} {
		e := newRig(t, nil).fail(t, openaicompat.Reply{Status: 429, RetryAfter: header, Header: http.Header{"Date": {date}}})
		require.Equal(t, want, e.RetryAfter, header)
	}
}

func TestCall_NamesWhereTheKeyIsSet(t *testing.T) {
	t.Parallel()
	named := newRig(t, func(c *compat.Config) { c.APIKey, c.KeyName = "sk-hush-other", "WAYBILL_PROVIDER_X_KEY" })
	require.Contains(t, named.fail(t).Message, "WAYBILL_PROVIDER_X_KEY")
	none := newRig(t, func(c *compat.Config) { c.APIKey = "" })
	require.Contains(t, none.fail(t).Message, "the API key of provider compat")
}

func TestCall_IsUnavailableWhenTheStreamBreaks(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]openaicompat.Reply{
		"cut":            {Pieces: []string{"a"}, End: openaicompat.EndCut},
		"cut at once":    {End: openaicompat.EndCut},
		"no reason":      {Pieces: []string{"a"}, End: openaicompat.EndSilent},
		"an error event": {Pieces: []string{"a"}, End: openaicompat.EndError, Message: "vendor says: hush"},
		"a broken chunk": {
			ContentType: "text/event-stream",
			Raw:         "data: {\"choices\":[{\"delta\":{\"content\":\"private words\n\n",
		},
		"nothing": {ContentType: "text/event-stream"},
		"a stray tool call": {
			ContentType: "text/event-stream",
			Raw:         `data: {"choices":[{"delta":{"tool_calls":[{"index":999999999}]}}]}` + "\n\n",
		},
	} {
		e := newRig(t, nil).fail(t, reply)
		require.Equal(t, provider.CodeUnavailable, e.Code, name)
		require.True(t, e.Retryable, name)
	}
}

func TestCall_ReadsTheCodeOfAnErrorEvent(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"rate_limit_exceeded":     provider.CodeQuota,
		"context_length_exceeded": provider.CodeContentTooLong,
		"server_error":            provider.CodeUnavailable,
	} {
		e := newRig(t, nil).fail(t, openaicompat.Reply{End: openaicompat.EndError, Code: code, Message: "vendor says: hush"})
		require.Equal(t, want, e.Code)
	}
	for name, event := range map[string]string{
		"with a member of another type": `{"error":{"code":429},"model":7}`,
		"with a byte that is not UTF-8": "{\"error\":{\"code\":429,\"message\":\"\xff\"}}",
	} { // the SDK reads these
		e := newRig(t, nil).fail(t, openaicompat.Reply{ContentType: "text/event-stream", Raw: "data: " + event + "\n\n"})
		require.Equal(t, provider.CodeQuota, e.Code, name)
	}
}

func TestCall_ReadsNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	said, _ := newRig(t, nil).call(t, ask(), openaicompat.Reply{
		ContentType: "text/event-stream",
		Raw: `data: {"choices":[{"index":0,"delta":{"content":"four"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n" +
			`data: {"choices":[{"index":0,"delta":{"content":" more"}}]}` + "\n\n" + `data: {"error":{"code":429}}` + "\n\n",
	})
	require.Equal(t, "four", said.Text)
}

// Some servers name the member in each piece.
func TestCall_TakesNoErrorForNone(t *testing.T) {
	t.Parallel()
	for _, member := range []string{`"error":null`, `"error": null, "model": 7`} { // the second is read by the SDK
		said, _ := newRig(t, nil).call(t, ask(), openaicompat.Reply{
			ContentType: "text/event-stream",
			Raw: `data: {` + member + `,"choices":[{"index":0,"delta":{"content":"four"}}]}` + "\n\n" +
				`data: {` + member + `,"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		})
		require.Equal(t, "four", said.Text, member)
	}
}

func TestCall_RefusesAddressesThatDoNotStream(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]openaicompat.Reply{
		"a page":      {ContentType: "text/html", Raw: "<html>vendor says</html>"},
		"a document":  {ContentType: "application/json", Raw: `{"choices":[]}`},
		"no content":  {Status: http.StatusNoContent},
		"a redirect":  {Status: http.StatusFound, Header: http.Header{"Location": {"http://127.0.0.1:1/v1"}}},
		"moved":       {Status: http.StatusPermanentRedirect, Header: http.Header{"Location": {"/elsewhere"}}},
		"not changed": {Status: http.StatusNotModified},
	} {
		e := newRig(t, nil).fail(t, reply)
		require.Equal(t, provider.CodeUnavailable, e.Code, name)
		require.False(t, e.Retryable, name)
	}
}

// Whatever a server streams, the call ends with an answer that keeps the port's
// promises or with a typed error.
func FuzzCall(f *testing.F) {
	for _, seed := range []string{
		"data: [DONE]\n\n",
		`data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-1}}` + "\n\n",
		"data: {}\n\n", "data: null\n\n", "event: error\ndata: {\"error\":{\"code\":429}}\n\n",
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":-1}]}}]}` + "\n\n",
		"\x00\n\n",
	} {
		f.Add(seed)
	}
	s := openaicompat.New(openaicompat.Options{})
	p, err := compat.New(compat.Config{BaseURL: s.URL(), Timeout: time.Second})
	require.NoError(f, err)
	f.Cleanup(func() {
		p.Close()
		s.Close()
	})
	f.Fuzz(func(t *testing.T, stream string) {
		s.Enqueue(openaicompat.Reply{ContentType: "text/event-stream", Raw: stream})
		var pieces []provider.Delta
		res, err := p.Call(t.Context(), ask(), func(d provider.Delta) error {
			pieces = append(pieces, d)
			return nil
		})
		if err != nil {
			_, ok := provider.As(err)
			require.True(t, ok, "%v", err)
			return
		}
		providertest.Check(t, res, pieces)
	})
}
