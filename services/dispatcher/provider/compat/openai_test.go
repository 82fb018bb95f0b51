package compat_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	"waybill.dev/waybill/test/double/openaicompat"
)

// speaking is a model of OpenAI's that answers in sound.
const speaking = "gpt-audio-double"

// openAIRig is OpenAI and the adapter in its dialect.
func openAIRig(t *testing.T, edit func(*compat.Config)) rig {
	t.Helper()
	s := openaicompat.New(openaicompat.Options{
		Key:    key,
		OpenAI: true,
		Models: []string{openaicompat.DefaultModel, thinking, speaking, "o3-double", "gpt-5-chat-double", "gpt-5.4-double"},
	})
	c := compat.Config{Dialect: compat.DialectOpenAI, BaseURL: s.URL(), APIKey: key, Timeout: 10 * time.Second}
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

func TestOpenAI_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	providertest.Run(t, func(t *testing.T) provider.Provider { return openAIRig(t, nil) }, providertest.Options{
		Request: ask(),
		Stalls: func(t *testing.T) provider.Provider {
			r := openAIRig(t, nil)
			r.server.Enqueue(openaicompat.Reply{Pieces: []string{"a", "b"}, End: openaicompat.EndStall})
			return r
		},
	})
}

func TestOpenAI_HasItsOwnIDAndAddress(t *testing.T) {
	t.Parallel()
	p, err := compat.New(compat.Config{Dialect: compat.DialectOpenAI, APIKey: key})
	require.NoError(t, err)
	require.Equal(t, "openai", p.ID())
	p.Close()
}

func tuned(model string) provider.Request {
	req := ask()
	temperature, topP, seed := 0.0, 0.5, int64(7)
	req.Model, req.MaxTokens, req.Temperature, req.TopP, req.Seed = model, 50, &temperature, &topP, &seed
	return req
}

// One request may go to any model: what a model cannot have tuned is left out.
func TestOpenAI_TunesOnlyModelsThatCanBeTuned(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		openaicompat.DefaultModel: `{"max_completion_tokens":50,"temperature":0,"top_p":0.5,"seed":7}`,
		"gpt-5-chat-double":       `{"max_completion_tokens":50,"temperature":0,"top_p":0.5,"seed":7}`,
		thinking:                  `{"max_completion_tokens":50,"reasoning_effort":"low"}`,
		"o3-double":               `{"max_completion_tokens":50,"reasoning_effort":"low"}`,
	} {
		r := openAIRig(t, func(c *compat.Config) { c.ReasoningEffort = "low" })
		r.call(t, tuned(model))
		body := r.lastBody(t)
		for _, same := range []string{"model", "messages", "stream", "stream_options"} {
			require.Contains(t, body, same)
			delete(body, same)
		}
		got, err := json.Marshal(body)
		require.NoError(t, err)
		require.JSONEq(t, want, string(got), model)
	}
}

// Some models think only when they are asked to, and can be tuned otherwise.
func TestOpenAI_TunesModelsThatAreNotAskedToThink(t *testing.T) {
	t.Parallel()
	for effort, want := range map[string]bool{"": true, "none": true, "low": false} {
		r := openAIRig(t, func(c *compat.Config) { c.ReasoningEffort = effort })
		r.call(t, tuned("gpt-5.4-double"))
		_, is := r.lastBody(t)["temperature"]
		require.Equal(t, want, is, effort)
	}
}

func TestProvider_IsStrictAsOpenAI(t *testing.T) {
	t.Parallel()
	for dialect, want := range map[compat.Dialect]projection.Vendor{
		compat.DialectCompatible: projection.AsWritten, compat.DialectOpenAI: projection.OpenAI, compat.DialectAzure: projection.Azure,
	} {
		var strict provider.Strict = dialectRig(t, dialect, func(c *compat.Config) { c.Dialect = dialect })
		require.Equal(t, want, strict.Dialect("m"))
		if dialect == compat.DialectOpenAI {
			want = projection.Tuned
		}
		require.Equal(t, want, strict.Dialect("ft:gpt-4.1-mini:acme::7p4l"))
	}
}

// A schema as written may break the rules of strict modes.
func TestProvider_IsNotStrictAboutASchemaAsWritten(t *testing.T) {
	t.Parallel()
	for via, want := range map[provider.SchemaVia]string{
		provider.ViaFormat: `"strict":false,"schema":{"type":"object"}`, provider.ViaTool: `"strict":false,"parameters":{"type":"object"}`,
	} {
		r := dialectRig(t, compat.DialectCompatible, nil)
		req := ask()
		req.Schema, req.Via, req.AsWritten = json.RawMessage(`{"type":"object"}`), via, true
		r.call(t, req)
		for _, part := range strings.Split(want, ",") {
			require.Contains(t, string(r.server.Requests()[0].Body), part)
		}
	}
}

func TestOpenAI_RefusesStopSequencesThatTheModelCannotHave(t *testing.T) {
	t.Parallel()
	r := openAIRig(t, nil)
	req := ask()
	req.Stop = []string{"END"}
	r.call(t, req)
	req.Model = thinking
	_, err := r.Call(t.Context(), req, nil)
	require.ErrorContains(t, err, `stop: model "gpt-5-double" takes no stop sequences`)
	require.Len(t, r.server.Requests(), 1)
}

func TestOpenAI_HoldsTheAnswerToTheSchema(t *testing.T) {
	t.Parallel()
	const ordered = `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["z","a"],"additionalProperties":false}`
	for via, want := range map[provider.SchemaVia]string{
		provider.ViaFormat: `{"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + ordered + `}}}`,
		provider.ViaTool: `{"tools":[{"type":"function","function":{"name":"answer","strict":true,"parameters":` + ordered + `}}],
			"tool_choice":{"type":"function","function":{"name":"answer"}},"parallel_tool_calls":false}`,
	} {
		for _, dialect := range []compat.Dialect{compat.DialectCompatible, compat.DialectOpenAI} {
			r := dialectRig(t, dialect, nil)
			req := ask()
			req.Schema, req.Via = json.RawMessage(ordered), via
			r.call(t, req)
			require.Contains(t, string(r.server.Requests()[0].Body), ordered, "the schema keeps its order")
			body := r.lastBody(t)
			for _, same := range []string{"model", "messages", "stream", "stream_options"} {
				delete(body, same)
			}
			got, err := json.Marshal(body)
			require.NoError(t, err)
			require.JSONEq(t, want, string(got))
		}
	}
}

// The arguments of a forced tool are handed on while they arrive.
func TestCall_StreamsTheForcedToolAsText(t *testing.T) {
	t.Parallel()
	req := ask()
	req.Schema, req.Via, req.SchemaName = json.RawMessage(schema), provider.ViaTool, "triage"
	step := make(chan struct{}, 5)
	r := openAIRig(t, nil)
	r.server.Enqueue(openaicompat.Reply{Pieces: []string{`{"a"`, `:"`, `b"}`}, Step: step})
	step <- struct{}{}
	var pieces []string
	res, err := r.Call(t.Context(), req, func(d provider.Delta) error {
		pieces = append(pieces, d.Text)
		step <- struct{}{} // the next chunk does not leave the server before
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{`{"a"`, `:"`, `b"}`, ""}, pieces)
	require.Equal(t, `{"a":"b"}`, res.Text)
	require.Equal(t, provider.StopClean, res.Stop)
	require.Empty(t, res.ToolCalls, "the tool is a channel, not something to call")
}

func TestCall_TakesTextWhenTheForcedToolWasNotCalled(t *testing.T) {
	t.Parallel()
	req := ask()
	req.Schema, req.Via = json.RawMessage(schema), provider.ViaTool
	res, _ := newRig(t, nil).call(t, req, openaicompat.Reply{Pieces: answer, AsText: true})
	require.Equal(t, half+other, res.Text, "a server that knows no tools may still have written what was wanted")
	require.Equal(t, provider.StopClean, res.Stop)

	res, _ = newRig(t, nil).call(t, req, openaicompat.Reply{
		Pieces:    []string{"Let me see."},
		ToolCalls: []openaicompat.ToolCall{{Name: "answer", Arguments: half + other}},
	})
	require.Equal(t, half+other, res.Text, "text outside the tool call is not part of the answer")
	require.Equal(t, provider.StopClean, res.Stop)
	require.Equal(t, "tool_calls", res.RawStop)
}

func TestCall_TellsThoughtsThatAreAskedFor(t *testing.T) {
	t.Parallel()
	req := ask()
	req.Thoughts = true
	res, pieces := newRig(t, nil).call(t, req, openaicompat.Reply{Thoughts: []string{"hm", "so"}, Pieces: []string{"a"}})
	require.Equal(t, "a", res.Text)
	require.Equal(t, []string{"hm", "so", ""}, []string{pieces[0].Thought, pieces[1].Thought, pieces[2].Thought})
	raw := `data: {"choices":[{"index":0,"delta":{"reasoning":"hm"}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n"
	_, pieces = newRig(t, nil).call(t, req, openaicompat.Reply{ContentType: "text/event-stream", Raw: raw})
	require.Equal(t, "hm", pieces[0].Thought)
}

func TestOpenAI_AnswersInSoundWhereTheModelDoes(t *testing.T) {
	t.Parallel()
	r := openAIRig(t, nil)
	req := ask()
	req.Model = speaking
	samples := []byte{1, 0, 2, 0, 3, 0}
	res, pieces := r.call(t, req, openaicompat.Reply{Pieces: []string{"Good ", "day"}, Sound: samples})
	require.Equal(t, "Good day", res.Text, "what is spoken")
	require.Len(t, pieces, 3, "and the end")
	require.Len(t, res.Media, 1)
	require.Equal(t, "audio/wav", res.Media[0].MIME)
	require.Equal(t, "RIFF\x2a\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\xc0\x5d\x00\x00\x80\xbb\x00\x00\x02\x00\x10\x00data\x06\x00\x00\x00"+string(samples), string(res.Media[0].Data))
	body := r.lastBody(t)
	require.Equal(t, []any{"text", "audio"}, body["modalities"])
	require.Equal(t, map[string]any{"voice": "alloy", "format": "pcm16"}, body["audio"])

	res, _ = r.call(t, req, openaicompat.Reply{Pieces: []string{"mute"}})
	require.Empty(t, res.Media)
}

func TestOpenAI_IsUnavailableWhenTheSoundIsGarbage(t *testing.T) {
	t.Parallel()
	e := openAIRig(t, nil).fail(t, openaicompat.Reply{
		ContentType: "text/event-stream",
		Raw:         `data: {"choices":[{"index":0,"delta":{"audio":{"data":"***"}},"finish_reason":"stop"}]}` + "\n\n",
	})
	require.Equal(t, provider.CodeUnavailable, e.Code)
}

func TestCall_UsesTheTenantsKey(t *testing.T) {
	t.Parallel()
	r := openAIRig(t, func(c *compat.Config) { c.APIKey, c.KeyName = "sk-hush-host", "WAYBILL_PROVIDER_OPENAI_KEY" })
	req := ask()
	req.Credential = key
	r.call(t, req)
	require.Equal(t, "Bearer "+key, r.server.Requests()[0].Header.Get("Authorization"))

	for credential, want := range map[provider.Secret]string{
		"":                "WAYBILL_PROVIDER_OPENAI_KEY",
		"sk-hush-tenant":  "the tenant's key for provider openai",
		"sk-hush\r\nX: y": "the tenant's key for provider openai has a space",
	} {
		req.Credential = credential
		_, err := r.Call(t.Context(), req, nil)
		e, ok := provider.As(err)
		require.True(t, ok)
		require.Equal(t, provider.CodeCredentialRequired, e.Code)
		require.Contains(t, e.Message, want)
		require.NotContains(t, e.Error(), "hush")
	}
}

func TestOpenAI_AsksNothingWithoutAKey(t *testing.T) {
	t.Parallel()
	r := openAIRig(t, func(c *compat.Config) { c.APIKey = "" })
	e := r.fail(t)
	require.Equal(t, provider.CodeCredentialRequired, e.Code)
	require.Contains(t, e.Message, "set the API key of provider openai")
	require.Empty(t, r.server.Requests())
}

func TestOpenAI_KeepsHowLongToWaitByItsOwnHeaders(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		header http.Header
		want   time.Duration
	}{
		{http.Header{"Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond},
		{http.Header{"Retry-After-Ms": {"soon"}}, 0},
		{http.Header{"X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {"6m0s"}}, 6 * time.Minute},
		{http.Header{"X-Ratelimit-Remaining-Requests": {"3"}, "X-Ratelimit-Reset-Requests": {"6m0s"}}, 0},
		{http.Header{"X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Tokens": {"48h"}}, 24 * time.Hour},
		{http.Header{"X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Tokens": {"-1s"}}, 0},
	} {
		e := newRig(t, nil).fail(t, openaicompat.Reply{Status: 429, Header: tc.header})
		require.Equal(t, tc.want, e.RetryAfter, "%v", tc.header)
	}
	s := openaicompat.New(openaicompat.Options{OpenAI: true, RateLimit: 1})
	defer s.Close()
	p, err := compat.New(compat.Config{Dialect: compat.DialectOpenAI, BaseURL: s.URL(), APIKey: key})
	require.NoError(t, err)
	defer p.Close()
	_, err = p.Call(t.Context(), ask(), nil)
	require.NoError(t, err)
	_, err = p.Call(t.Context(), ask(), nil)
	e, ok := provider.As(err)
	require.True(t, ok)
	require.Equal(t, provider.CodeQuota, e.Code)
	require.Equal(t, time.Minute, e.RetryAfter)
}

// A name that is the server's own text is not repeated.
func TestCall_NamesTheMemberThatTheModelDoesNotTake(t *testing.T) {
	t.Parallel()
	require.Contains(t, newRig(t, nil).fail(t, openaicompat.Reply{Status: 400, Param: "temperature"}).Message, "the model does not take temperature")
	require.NotContains(t, newRig(t, nil).fail(t, openaicompat.Reply{Status: 400, Param: "vendor says hush"}).Message, "take")
}

// Wherever a stream is cut, the call fails or has the whole answer.
func TestCall_NeverTakesHalfAnAnswerForAWholeOne(t *testing.T) {
	t.Parallel()
	for way, dialect := range map[string]compat.Dialect{"format": compat.DialectCompatible, "tool": compat.DialectOpenAI} {
		for _, clean := range []bool{false, true} {
			t.Run(way, func(t *testing.T) {
				t.Parallel()
				r := dialectRig(t, dialect, nil)
				req := outcome{}.request(dialect, ways[way])
				r.call(t, req, openaicompat.Reply{Pieces: answer})
				for at := range streamed(t, r, r.server.Requests()[0].Body) + 1 {
					r.cutAt(t, req, openaicompat.Cut{At: at, Clean: clean})
				}
			})
		}
	}
}

func (r rig) cutAt(t *testing.T, req provider.Request, cut openaicompat.Cut) {
	t.Helper()
	r.server.Enqueue(openaicompat.Reply{Pieces: answer, Cut: &cut})
	var streamed string
	res, err := r.Call(t.Context(), req, func(d provider.Delta) error {
		streamed += d.Text
		return nil
	})
	require.True(t, strings.HasPrefix(half+other, streamed), "cut at %d: %q", cut.At, streamed)
	if err != nil {
		e, ok := provider.As(err)
		require.True(t, ok, "cut at %d: %v", cut.At, err)
		require.Equal(t, provider.CodeUnavailable, e.Code)
		return
	}
	require.Equal(t, half+other, res.Text, "cut at %d", cut.At)
	require.Equal(t, provider.StopClean, res.Stop)
}

// streamed is how many bytes the server streams as an answer to a body.
func streamed(t *testing.T, r rig, body []byte) int {
	t.Helper()
	r.server.Enqueue(openaicompat.Reply{Pieces: answer})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.server.URL()+"/chat/completions", strings.NewReader(string(body)))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Greater(t, n, int64(1000))
	return int(n)
}

// Whatever a server streams for a forced tool, the call ends with an answer that
// keeps the port's promises or with a typed error.
func FuzzOpenAI(f *testing.F) {
	for _, seed := range []string{
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"answer","arguments":"{"}}]},"finish_reason":"tool_calls"}]}` + "\n\n",
		`data: {"choices":[{"delta":{"tool_calls":[{"index":1}],"content":"a"},"finish_reason":"stop"}]}` + "\n\n",
		`data: {"choices":[{"delta":{"audio":{"data":"AQI=","transcript":"a"},"reasoning":7,"refusal":"no"},"finish_reason":"length"}]}` + "\n\n",
		`data: {"error":{"code":{"a":1}}}` + "\n\n", "data: [DONE]\n\n", "data:\ndata:\n\n",
	} {
		f.Add(seed)
	}
	s := openaicompat.New(openaicompat.Options{OpenAI: true})
	p, err := compat.New(compat.Config{Dialect: compat.DialectOpenAI, BaseURL: s.URL(), APIKey: key, Timeout: time.Second})
	require.NoError(f, err)
	f.Cleanup(func() {
		p.Close()
		s.Close()
	})
	req := ask()
	req.Schema, req.Via, req.Thoughts = json.RawMessage(schema), provider.ViaTool, true
	f.Fuzz(func(t *testing.T, stream string) {
		s.Enqueue(openaicompat.Reply{ContentType: "text/event-stream", Raw: stream})
		var pieces []provider.Delta
		res, err := p.Call(t.Context(), req, func(d provider.Delta) error {
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

func BenchmarkCall_Of2KB(b *testing.B) {
	s := openaicompat.New(openaicompat.Options{OpenAI: true})
	defer s.Close()
	p, err := compat.New(compat.Config{Dialect: compat.DialectOpenAI, BaseURL: s.URL(), APIKey: key})
	require.NoError(b, err)
	defer p.Close()
	pieces := strings.SplitAfter(strings.Repeat("four ", 410), " ")
	b.ReportAllocs()
	for b.Loop() {
		s.Enqueue(openaicompat.Reply{Pieces: pieces})
		_, err := p.Call(b.Context(), ask(), func(provider.Delta) error { return nil })
		require.NoError(b, err)
	}
}
