package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/services/dispatcher/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// named is a provider that has an id and nothing else.
type named string

func (n named) ID() string { return string(n) }

func (n named) Call(context.Context, provider.Request, func(provider.Delta) error) (provider.Result, error) {
	return provider.Result{}, nil
}

func TestRegistry_FindsByIDAndListsSorted(t *testing.T) {
	t.Parallel()
	r, err := provider.NewRegistry(named("sample"), named("compat"))
	require.NoError(t, err)
	require.Equal(t, []string{"compat", "sample"}, r.IDs())
	p, ok := r.Lookup("sample")
	require.True(t, ok)
	require.Equal(t, named("sample"), p)
	_, ok = r.Lookup("unknown")
	require.False(t, ok)
}

func TestRegistry_RefusesTwoOfOneID(t *testing.T) {
	t.Parallel()
	_, err := provider.NewRegistry(named("a"), named("a"))
	require.ErrorContains(t, err, `provider "a" is configured twice`)
}

func TestError_ShowsCodeAndMessageButNotTheCause(t *testing.T) {
	t.Parallel()
	e := &provider.Error{Code: provider.CodeQuota, Message: "used up", Cause: fmt.Errorf("key sk-123: %w", io.EOF)}
	require.Equal(t, "provider_quota_exhausted: used up", e.Error())
	require.NotContains(t, fmt.Sprintf("%v %+v %s", e, e, e), "sk-123")
	require.ErrorIs(t, e, io.EOF)
	found, ok := provider.As(fmt.Errorf("ask: %w", e))
	require.True(t, ok)
	require.Same(t, e, found)
	_, ok = provider.As(io.EOF)
	require.False(t, ok)
}

func good() provider.Request {
	return provider.Request{Model: "m", Messages: []provider.Message{
		{Role: "system", Content: json.RawMessage(`"be kind"`)},
		{Role: "user", Content: json.RawMessage(` [{"type":"text","text":"hello"}]`)},
		{Role: "assistant", Content: json.RawMessage(`"hi"`)},
		{Role: "tool", Content: json.RawMessage(`"42"`)},
	}}
}

func TestValidate_AcceptsEveryRoleAndBothContents(t *testing.T) {
	t.Parallel()
	require.NoError(t, good().Validate())
	require.NoError(t, provider.Request{Model: "m", System: "alone"}.Validate())
}

func TestValidate_NamesTheMember(t *testing.T) {
	t.Parallel()
	const private = "private words"
	for _, tc := range []struct {
		spoil func(*provider.Request)
		code  string
		want  string
	}{
		{func(r *provider.Request) { r.Model = "" }, provider.CodeInvalidRequest, "model"},
		{func(r *provider.Request) { r.Messages = nil }, provider.CodeInvalidRequest, "messages"},
		{func(r *provider.Request) { r.MaxTokens = -3 }, provider.CodeInvalidRequest, "maxTokens: -3"},
		{func(r *provider.Request) { r.Schema = json.RawMessage(`{`) }, provider.CodeSchemaInvalid, "schema"},
		{
			func(r *provider.Request) { r.Messages[1].Role = "robot" },
			provider.CodeInvalidRequest, `messages[1].role: "robot"`,
		},
		{func(r *provider.Request) { r.Messages[2].Content = nil }, provider.CodeInvalidRequest, "messages[2].content"},
		{
			func(r *provider.Request) { r.Messages[2].Content = json.RawMessage(`{"t":"` + private + `"}`) },
			provider.CodeInvalidRequest, "messages[2].content",
		},
		{
			func(r *provider.Request) { r.Messages[2].Content = json.RawMessage(`"` + private) },
			provider.CodeInvalidRequest, "messages[2].content",
		},
	} {
		r := good()
		tc.spoil(&r)
		e, ok := provider.As(r.Validate())
		require.True(t, ok, tc.want)
		require.Equal(t, tc.code, e.Code)
		require.Contains(t, e.Message, tc.want)
		require.NotContains(t, e.Message, private)
	}
}

// making is how a collector is made.
type making func(model string, emit func(provider.Delta) error) *provider.Collector

// collect adds pieces to a collector and gives what was emitted.
func collect(t *testing.T, newCollector making, end provider.Result, pieces ...provider.Delta) (provider.Result, []provider.Delta) {
	t.Helper()
	var out []provider.Delta
	c := newCollector("m", func(d provider.Delta) error {
		out = append(out, d)
		return nil
	})
	for _, d := range pieces {
		require.NoError(t, c.Add(d))
	}
	r, err := c.Finish(end, provider.FinishReason(end.Stop))
	require.NoError(t, err)
	return r, out
}

// OpenWOP host contract §4.3, messages: the pieces are the tokens.
func TestTokenCollector_EmitsAsManyPiecesAsCameAndMarksTheLast(t *testing.T) {
	t.Parallel()
	usage := provider.Usage{InputTokens: 1, OutputTokens: 2, TotalTokens: 3, Known: true}
	r, out := collect(t, provider.NewTokenCollector, provider.Result{Stop: provider.StopClean, Usage: usage}, provider.Delta{Text: "a"}, provider.Delta{Text: ""}, provider.Delta{Text: "b"})
	require.Equal(t, "ab", r.Text)
	require.Equal(t, "m", r.Model)
	require.Equal(t, []provider.Delta{
		{Text: "a", Token: true, Model: "m"},
		{Token: true, Model: "m"},
		{Text: "b", Token: true, Model: "m", Last: true, FinishReason: "stop", Usage: &usage},
	}, out)
}

// Nothing waits for a later piece.
func TestCollector_EmitsAPieceAtOnce(t *testing.T) {
	t.Parallel()
	var out []provider.Delta
	c := provider.NewCollector("m", func(d provider.Delta) error {
		out = append(out, d)
		return nil
	})
	for i, text := range []string{"a", "b"} {
		require.NoError(t, c.Add(provider.Delta{Text: text}))
		require.Len(t, out, i+1)
		require.Equal(t, provider.Delta{Text: text, Model: "m"}, out[i])
	}
	_, err := c.Finish(provider.Result{Stop: provider.StopClean}, "stop")
	require.NoError(t, err)
	require.Equal(t, provider.Delta{Model: "m", Last: true, FinishReason: "stop"}, out[2])
}

func TestCollector_EndsAnEmptyAnswerWithAnEmptyPiece(t *testing.T) {
	t.Parallel()
	for _, newCollector := range []making{provider.NewCollector, provider.NewTokenCollector} {
		r, out := collect(t, newCollector, provider.Result{Stop: provider.StopRefused})
		require.Empty(t, r.Text)
		require.Equal(t, []provider.Delta{{Model: "m", Last: true, FinishReason: "content_filter"}}, out)
	}
}

func TestCollector_KeepsToolCalls(t *testing.T) {
	t.Parallel()
	call := provider.ToolCall{ID: "1", Name: "look", Arguments: "{}"}
	r, out := collect(t, provider.NewCollector, provider.Result{Stop: provider.StopClean}, provider.Delta{ToolCalls: []provider.ToolCall{call}})
	require.Equal(t, []provider.ToolCall{call}, r.ToolCalls)
	require.Equal(t, []provider.ToolCall{call}, out[0].ToolCalls)
}

func TestCollector_NamesTheModelThatAnswered(t *testing.T) {
	t.Parallel()
	c := provider.NewCollector("asked", nil)
	c.AnsweredBy("")
	c.AnsweredBy("asked-2026")
	r, err := c.Finish(provider.Result{}, "")
	require.NoError(t, err)
	require.Equal(t, "asked-2026", r.Model)
}

func TestCollector_BoundsTheAnswer(t *testing.T) {
	t.Parallel()
	half := strings.Repeat("x", provider.MaxAnswerBytes/2)
	for name, second := range map[string]func(*provider.Collector) error{
		"text":    func(c *provider.Collector) error { return c.Add(provider.Delta{Text: half + "x"}) },
		"refusal": func(c *provider.Collector) error { return c.CheckSize(len(half) + 1) },
		"arguments": func(c *provider.Collector) error {
			return c.Add(provider.Delta{ToolCalls: []provider.ToolCall{{Arguments: half + "x"}}})
		},
	} {
		c := provider.NewCollector("m", nil)
		require.NoError(t, c.Add(provider.Delta{Text: half}))
		e, ok := provider.As(second(c))
		require.True(t, ok, name)
		require.Equal(t, provider.CodeContentTooLong, e.Code, name)
	}
}

func TestCollector_ReturnsTheErrorOfEmit(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	c := provider.NewTokenCollector("m", func(provider.Delta) error { return enough })
	require.NoError(t, c.Add(provider.Delta{Text: "held back"}))
	require.Same(t, enough, c.Add(provider.Delta{Text: "b"}))
	c = provider.NewCollector("m", func(provider.Delta) error { return enough })
	require.Same(t, enough, c.Add(provider.Delta{Text: "a"}))
	_, err := provider.NewCollector("m", func(provider.Delta) error { return enough }).Finish(provider.Result{}, "stop")
	require.Same(t, enough, err)
}

// A token that is paced is out before the next one is waited for.
func TestTokenCollector_AddAfterIsNeverOneLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var at []time.Duration
		c := provider.NewTokenCollector("m", func(provider.Delta) error {
			at = append(at, time.Since(start))
			return nil
		})
		for range 3 {
			require.NoError(t, c.AddAfter(t.Context(), time.Second, provider.Delta{Text: "x"}))
		}
		_, err := c.Finish(provider.Result{}, "stop")
		require.NoError(t, err)
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, at)
	})
}

func TestPause_EndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.NoError(t, provider.Pause(ctx, 900*time.Millisecond))
		require.ErrorIs(t, provider.Pause(ctx, time.Hour), context.DeadlineExceeded)
		require.ErrorIs(t, provider.Pause(ctx, 0), context.DeadlineExceeded)
	})
}

// OpenWOP envelope contract §14.1, in the words of output.chunk's meta.
func TestFinishReason_NormalizesEveryClass(t *testing.T) {
	t.Parallel()
	for class, want := range map[provider.StopClass]string{
		provider.StopClean: "stop", provider.StopSequence: "stop", provider.StopTruncated: "length",
		provider.StopRefused: "content_filter", provider.StopUnknown: "",
	} {
		require.Equal(t, want, provider.FinishReason(class), class)
	}
}
