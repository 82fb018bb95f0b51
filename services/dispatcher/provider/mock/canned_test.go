package mock_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
)

func open(t *testing.T, id, config string) provider.Provider {
	t.Helper()
	p, err := mock.Canned(id, json.RawMessage(config))
	require.NoError(t, err)
	return p
}

func call(t *testing.T, p provider.Provider) (provider.Result, []provider.Delta) {
	t.Helper()
	return providertest.Answer(t, p, ask("n"))
}

func TestCanned_PassesTheSuite(t *testing.T) { //nolint:paralleltest // the suite counts goroutines
	many := `{"tokens":["a"` + strings.Repeat(`,"b"`, 200) + `],"delayMsPerToken":50}`
	from := func(id, config string) func(*testing.T) provider.Provider {
		return func(t *testing.T) provider.Provider { return open(t, id, config) }
	}
	for _, tc := range []struct{ id, config, stalls string }{
		{"stream-text", `{"tokens":["a"," b"," c"]}`, many},
		{"tool-calls", `{"toolCalls":[{"id":"1","name":"look","arguments":"{}"}]}`, ""},
		{"usage-only", ``, ""},
	} {
		o := providertest.Options{Request: ask("n")}
		if tc.stalls != "" {
			o.Stalls = from(tc.id, tc.stalls)
		}
		t.Run(tc.id, func(t *testing.T) { providertest.Run(t, from(tc.id, tc.config), o) })
	}
}

func TestCannedIDs_AreTheProtocolsCatalogue(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"error", "stream-text", "tool-calls", "usage-only"}, mock.CannedIDs())
}

// OpenWOP host contract §2.3: one chunk per token, exactly len(tokens) chunks;
// the last one has isLast, finishReason and usage; the model is on all.
func TestStreamText_EmitsOnePieceForEachToken(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		config string
		texts  []string
		finish string
		usage  provider.Usage
		model  string
	}{
		{
			``,
			[]string{"mock", " response"},
			"stop",
			provider.Usage{InputTokens: 1, OutputTokens: 2, TotalTokens: 3, Known: true},
			"mock-stream-text-v1",
		},
		{
			`{}`,
			[]string{"mock", " response"},
			"stop",
			provider.Usage{InputTokens: 1, OutputTokens: 2, TotalTokens: 3, Known: true},
			"mock-stream-text-v1",
		},
		{
			`{"tokens":["a","","b"],"finishReason":"length","model":"m"}`,
			[]string{"a", "", "b"},
			"length",
			provider.Usage{InputTokens: 1, OutputTokens: 3, TotalTokens: 4, Known: true},
			"m",
		},
		{
			`{"tokens":["a"],"usage":{"promptTokens":10,"completionTokens":20,"totalTokens":31}}`,
			[]string{"a"},
			"stop",
			provider.Usage{InputTokens: 10, OutputTokens: 20, TotalTokens: 31, Known: true},
			"mock-stream-text-v1",
		},
		{
			`{"tokens":["a"],"usage":{"promptTokens":10}}`,
			[]string{"a"},
			"stop",
			provider.Usage{InputTokens: 10, OutputTokens: 1, TotalTokens: 11, Known: true},
			"mock-stream-text-v1",
		},
	} {
		_, pieces := call(t, open(t, "stream-text", tc.config))
		var texts []string
		for _, d := range pieces {
			texts = append(texts, d.Text)
			require.Equal(t, tc.model, d.Model)
		}
		require.Equal(t, tc.texts, texts)
		last := pieces[len(pieces)-1]
		require.Equal(t, tc.finish, last.FinishReason)
		require.Equal(t, tc.usage, *last.Usage)
	}
}

func TestStreamText_WithoutTokensStillEnds(t *testing.T) {
	t.Parallel()
	res, pieces := call(t, open(t, "stream-text", `{"tokens":[]}`))
	require.Empty(t, res.Text)
	require.Len(t, pieces, 1)
}

func TestStreamText_ClassifiesItsFinishReason(t *testing.T) {
	t.Parallel()
	for finish, want := range map[string]provider.StopClass{
		"stop":           provider.StopClean,
		"tool_calls":     provider.StopClean,
		"length":         provider.StopTruncated,
		"content_filter": provider.StopRefused,
	} {
		res, pieces := call(t, open(t, "stream-text", `{"finishReason":"`+finish+`"}`))
		require.Equal(t, want, res.Stop, finish)
		require.Equal(t, finish, pieces[len(pieces)-1].FinishReason)
	}
}

func TestStreamText_PacesItsTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := open(t, "stream-text", `{"tokens":["a","b"],"delayMsPerToken":5000}`)
		var at []time.Duration
		_, err := p.Call(t.Context(), ask("n"), func(provider.Delta) error {
			at = append(at, time.Since(start))
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []time.Duration{5 * time.Second, 10 * time.Second}, at)
	})
}

func TestToolCalls_CarriesEachCallInAPiece(t *testing.T) {
	t.Parallel()
	res, pieces := call(t, open(t, "tool-calls", `{"toolCalls":[
		{"id":"1","name":"look","arguments":"{\"at\":1}"},
		{"id":"2","name":"go","arguments":{ "to": [1, 2] }},
		{"id":"3","name":"stop"}]}`))
	require.Empty(t, res.Text)
	require.Equal(t, []provider.ToolCall{
		{ID: "1", Name: "look", Arguments: `{"at":1}`},
		{ID: "2", Name: "go", Arguments: `{"to":[1,2]}`},
		{ID: "3", Name: "stop", Arguments: `{}`},
	}, res.ToolCalls)
	require.Len(t, pieces, 3)
	require.Equal(t, "tool_calls", pieces[2].FinishReason)
}

func TestError_FailsWithWhatItWasGiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		p := open(t, "error", `{"code":"provider_unavailable","message":"down","retryable":true,"failAfterMs":250}`)
		_, err := p.Call(t.Context(), ask("n"), nil)
		e, ok := provider.As(err)
		require.True(t, ok)
		require.Equal(t, provider.Error{Code: "provider_unavailable", Message: "down", Retryable: true}, *e)
		require.Equal(t, 250*time.Millisecond, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = p.Call(ctx, ask("n"), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestUsageOnly_EmitsOnePieceWithoutText(t *testing.T) {
	t.Parallel()
	res, pieces := call(t, open(t, "usage-only", `{"usage":{"promptTokens":5,"completionTokens":6,"totalTokens":11}}`))
	require.Empty(t, res.Text)
	require.Len(t, pieces, 1)
	require.Equal(t, provider.Usage{InputTokens: 5, OutputTokens: 6, TotalTokens: 11, Known: true}, *pieces[0].Usage)
}

func TestCanned_NamesTheMemberThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ id, config, want string }{
		{"unknown", ``, `id: "unknown" is no mock provider; want one of error, stream-text, tool-calls, usage-only`},
		{"stream-text", `[]`, "config: want a JSON object"},
		{"stream-text", `null`, "config: want a JSON object"},
		{"stream-text", `{`, "config: "},
		{"stream-text", `{"tokens":`, "config.tokens: not a JSON value"},
		{"stream-text", `{} {}`, "config: want one JSON object"},
		{"stream-text", `{"Tokens":["a"]}`, "config.Tokens: unknown member"},
		{"stream-text", `{"tokens":["a"],"tokens":["b"]}`, "config.tokens: given twice"},
		{"stream-text", `{"tokens":"a"}`, "config.tokens: want an array of strings"},
		{"stream-text", `{"tokens":["a",1]}`, "config.tokens: want an array of strings"},
		{"stream-text", `{"tokens":["a",null]}`, "config.tokens[1]: want a string"},
		{"stream-text", `{"tokens":null}`, "config.tokens: want an array of strings"},
		{"stream-text", `{"delayMsPerToken":-1}`, "config.delayMsPerToken: -1; want 0 to 5000"},
		{"stream-text", `{"delayMsPerToken":5001}`, "config.delayMsPerToken: 5001; want 0 to 5000"},
		{"stream-text", `{"delayMsPerToken":1.5}`, "config.delayMsPerToken: want a whole number"},
		{
			"stream-text", `{"finishReason":"end_turn"}`,
			`config.finishReason: "end_turn"; want one of stop, length, tool_calls, content_filter`,
		},
		{"stream-text", `{"model":""}`, "config.model: want a string that is not empty"},
		{"stream-text", `{"usage":{"promptTokens":-1}}`, "config.usage.promptTokens: -1"},
		{"stream-text", `{"usage":{"prompt":1}}`, "config.usage.prompt: unknown member"},
		{"stream-text", `{"usage":5}`, "config.usage: want a JSON object"},
		{"tool-calls", ``, "config.toolCalls: required"},
		{"tool-calls", `{"toolCalls":[]}`, "config.toolCalls: want at least one"},
		{"tool-calls", `{"toolCalls":[{"id":"1"}]}`, "config.toolCalls[0].name: required"},
		{"tool-calls", `{"toolCalls":[7]}`, "config.toolCalls[0]: want a JSON object"},
		{"tool-calls", `{"toolCalls":[{"id":"1","name":"n","args":{}}]}`, "config.toolCalls[0].args: unknown member"},
		{"error", `{"message":"x"}`, "config.code: required"},
		{"error", `{"code":"x"}`, "config.message: required"},
		{"error", `{"code":"x","message":"y","retryable":"yes"}`, "config.retryable: want true or false"},
		{"error", `{"code":"x","message":"y","failAfterMs":9999}`, "config.failAfterMs: 9999"},
		{"usage-only", `{"tokens":[]}`, "config.tokens: unknown member"},
	} {
		_, err := mock.Canned(tc.id, json.RawMessage(tc.config))
		require.ErrorContains(t, err, tc.want, "%s %s", tc.id, tc.config)
	}
}

func TestCanned_ReportsEverythingThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := mock.Canned("stream-text", json.RawMessage(`{"a":1,"delayMsPerToken":-1,"usage":{"totalTokens":"x"}}`))
	require.ErrorContains(t, err, "config.a:")
	require.ErrorContains(t, err, "config.delayMsPerToken:")
	require.ErrorContains(t, err, "config.usage.totalTokens:")
}

// Whatever the config, Canned gives a provider or an error, and a provider
// keeps the port's promises.
func FuzzCanned(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `{"tokens":["a"]}`, `{"usage":{"promptTokens":1}}`,
		`{"toolCalls":[{"id":"1","name":"n"}]}`, `{"code":"c","message":"m"}`, `[{`,
	} {
		for i := range mock.CannedIDs() {
			f.Add(i, seed)
		}
	}
	f.Fuzz(func(t *testing.T, which int, config string) {
		ids := mock.CannedIDs()
		p, err := mock.Canned(ids[uint(which)%uint(len(ids))], json.RawMessage(config))
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // so that no delay is waited for
		_, err = p.Call(ctx, ask("n"), nil)
		require.Error(t, err)
	})
}
