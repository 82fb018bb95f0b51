package anthropic_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	double "waybill.dev/waybill/test/double/anthropic"
)

func TestCall_IsUnavailableWhenNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	p, err := anthropic.New(anthropic.Config{BaseURL: "http://" + address, APIKey: key})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	_, err = p.Call(t.Context(), ask(), nil)
	e, ok := provider.As(err)
	require.True(t, ok)
	require.Equal(t, provider.CodeUnavailable, e.Code)
	require.True(t, e.Retryable)
	require.NotContains(t, e.Cause.Error(), "/v1")
}

func TestCall_GivesUpOnSilence(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]double.Reply{
		"before the answer": {Wait: time.Minute},
		"in the answer":     {Pieces: []string{"a", "b"}, End: double.EndStall},
	} {
		e := newRig(t, func(c *anthropic.Config, _ *double.Options) { c.Timeout = 100 * time.Millisecond }).fail(t, ask(), reply)
		require.Equal(t, provider.CodeUnavailable, e.Code, name)
		require.True(t, e.Retryable, name)
	}
}

func TestCall_ReturnsTheContextsErrorAtItsDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.server.Enqueue(double.Reply{Wait: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := r.Call(ctx, ask(), nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, isError := provider.As(err)
	require.False(t, isError, "the caller's deadline is not the provider's fault")
}

func TestCall_BoundsTheAnswer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	half := strings.Repeat("x", provider.MaxAnswerBytes/2+1)
	large := func(r *provider.Request) { r.MaxTokens = 100_000_000 }
	for name, tc := range map[string]struct {
		way   way
		reply double.Reply
	}{
		"text":  {free, double.Reply{Pieces: []string{half, half}}},
		"input": {tool, double.Reply{Pieces: []string{half, half}}},
		"calls": {free, double.Reply{ToolCalls: []double.ToolCall{{Name: "f", Input: half + half}}}},
		"text and calls": {
			free,
			double.Reply{Pieces: []string{half}, ToolCalls: []double.ToolCall{{Name: "f", Input: half}}},
		},
		"text with tools": {
			tool,
			double.Reply{Pieces: []string{half, half}, ToolCalls: []double.ToolCall{{Name: "f", Input: "{}"}}},
		},
		"one event": {
			free,
			double.Reply{ContentType: "text/event-stream", Raw: "event: x\ndata: " + half + half + half + half + half},
		},
		"many lines of one": {
			free,
			double.Reply{ContentType: "text/event-stream", Raw: strings.Repeat("data: "+half+"\n", 4)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(_ *anthropic.Config, o *double.Options) { o.MaxOutput, o.Context = 1<<40, 1<<40 })
			req := tc.way.ask()
			large(&req)
			require.Equal(t, provider.CodeContentTooLong, r.fail(t, req, tc.reply).Code)
		})
	}
}

// An error's body is read as far as an error goes, and not for ever.
func TestCall_ReadsOnlySoMuchOfAnError(t *testing.T) {
	t.Parallel()
	e := newRig(t, nil).fail(t, ask(), double.Reply{Status: 400, Message: strings.Repeat("vendor says ", 1<<20)})
	require.Equal(t, 400, e.Status)
	require.Equal(t, provider.CodeInvalidRequest, e.Code)
}

func TestCall_KeepsHowLongToWait(t *testing.T) {
	t.Parallel()
	const date = "Wed, 21 Oct 2026 07:28:00 GMT"
	limit := func(name, remaining, reset string) http.Header {
		return http.Header{
			"Date": {date},
			"Anthropic-Ratelimit-" + name + "-Remaining": {remaining},
			"Anthropic-Ratelimit-" + name + "-Reset":     {reset},
		}
	}
	for _, tc := range []struct {
		after  string
		header http.Header
		want   time.Duration
	}{
		{"", http.Header{}, 0},
		{"7", limit("Requests", "0", "2026-10-21T08:00:00Z"), 7 * time.Second},
		{"", limit("Requests", "0", "2026-10-21T07:28:30Z"), 30 * time.Second},
		{"", limit("Input-Tokens", "0", "2026-10-21T07:29:00Z"), time.Minute},
		{"", limit("Output-Tokens", "12", "2026-10-21T07:29:00Z"), 0},
		{"", limit("Tokens", "0", "soon"), 0},
		{"", limit("Tokens", "0", "2026-10-21T07:00:00Z"), 0},
		{"", limit("Tokens", "0", "2099-10-21T07:00:00Z"), 24 * time.Hour},
	} {
		e := newRig(t, nil).fail(t, ask(), double.Reply{Status: 429, RetryAfter: tc.after, Header: tc.header})
		require.Equal(t, tc.want, e.RetryAfter, "%+v", tc)
	}
}

func TestCall_MeetsTheRateLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *anthropic.Config, o *double.Options) { o.RateLimit = 1 })
	r.call(t, ask())
	e := r.fail(t, ask())
	require.Equal(t, provider.CodeQuota, e.Code)
	require.True(t, e.Retryable)
	require.Equal(t, 7*time.Second, e.RetryAfter)
}

func TestCall_NamesWhereTheKeyIsSet(t *testing.T) {
	t.Parallel()
	named := newRig(t, func(c *anthropic.Config, _ *double.Options) {
		c.APIKey, c.KeyName = "sk-hush-other", "WAYBILL_PROVIDER_X_KEY"
	})
	require.Contains(t, named.fail(t, ask()).Message, "WAYBILL_PROVIDER_X_KEY")
	none := newRig(t, func(c *anthropic.Config, _ *double.Options) { c.APIKey = "" })
	require.Contains(t, none.fail(t, ask()).Message, "the API key of provider anthropic")
}

func TestCall_ReusesItsConnection(t *testing.T) {
	t.Parallel()
	answer := stream(evStart, evText, evA, evShut, evEnd, evStop).Raw
	providertest.ReusesItsConnection(t, providertest.Streaming{Answer: answer}, ask(), func(url string) (provider.Provider, error) {
		return anthropic.New(anthropic.Config{BaseURL: url})
	})
}

// One answer of 2 KB, in pieces of 16 bytes, over a real connection.
func BenchmarkCall(b *testing.B) {
	pieces := make([]string, 128)
	for i := range pieces {
		pieces[i] = "sixteen letters "
	}
	r := newRig(b, func(_ *anthropic.Config, o *double.Options) {
		o.Answer = func(double.Recorded) double.Reply { return double.Reply{Pieces: pieces} }
	})
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		_, err := r.Call(b.Context(), ask(), func(d provider.Delta) error {
			n += len(d.Text)
			return nil
		})
		if err != nil || n != 2048 {
			b.Fatalf("%d bytes, %v", n, err)
		}
	}
}

// Gateways drop the names of events, add keep-alive, or forget the label of the stream.
func TestCall_ReadsAStreamWithoutNamesOfEvents(t *testing.T) {
	t.Parallel()
	body := strings.Join([]string{
		"\ufeff",
		`data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}`,
		`data: `,
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`data: {"type":"ping"}`,
		`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`,
		`data: {"type":"content_block_stop","index":0}`,
		`data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}`,
		`data: {"type":"message_stop"}`,
	}, "\n\n")
	for _, label := range []string{"text/event-stream", "text/plain", "application/octet-stream"} {
		r := newRig(t, nil)
		res, _ := r.call(t, free.ask(), double.Reply{ContentType: label, Raw: body})
		require.Equal(t, "hello", res.Text, label)
		require.Equal(t, provider.StopClean, res.Stop, label)
		require.Equal(t, 3, res.Usage.InputTokens, label)
	}
}
