package mock

import (
	"context"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// streamText streams its tokens, one per piece.
type streamText struct {
	tokens []string
	delay  time.Duration
	finish string
	usage  provider.Usage
	model  string
}

func newStreamText(m *members) provider.Provider {
	s := &streamText{tokens: m.texts("tokens", []string{"mock", " response"})}
	s.delay = m.millis("delayMsPerToken")
	s.finish = m.oneOf("finishReason", "stop", "length", "tool_calls", "content_filter")
	s.usage = usageMember(m, usage(1, len(s.tokens)))
	s.model = m.text("model", "mock-stream-text-v1")
	return s
}

func (s *streamText) ID() string { return ID }

func (s *streamText) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	pieces := make([]provider.Delta, len(s.tokens))
	for i, token := range s.tokens {
		pieces[i].Text = token
	}
	a := cannedAnswer{model: s.model, delay: s.delay, pieces: pieces}
	a.end = provider.Result{Stop: stopOf(s.finish), RawStop: s.finish, Usage: s.usage}
	return a.stream(ctx, req, emit)
}

// stopOf classifies a finish reason. tool_calls is clean here, because the run requested it.
func stopOf(finish string) provider.StopClass {
	switch finish {
	case "length":
		return provider.StopTruncated
	case "content_filter":
		return provider.StopRefused
	default:
		return provider.StopClean
	}
}

// toolCalls requests tools, one call per piece.
type toolCalls struct {
	calls []provider.ToolCall
	delay time.Duration
}

func newToolCalls(m *members) provider.Provider {
	t := &toolCalls{delay: m.millis("delayMsPerToken")}
	for _, o := range m.objects("toolCalls") {
		t.calls = append(t.calls, provider.ToolCall{
			ID:        o.required("id"),
			Name:      o.required("name"),
			Arguments: o.jsonText("arguments"),
		})
		m.addErrors(o)
	}
	return t
}

func (t *toolCalls) ID() string { return ID }

func (t *toolCalls) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	pieces := make([]provider.Delta, len(t.calls))
	for i, call := range t.calls {
		pieces[i].ToolCalls = []provider.ToolCall{call}
	}
	const finish = "tool_calls"
	r := provider.Result{Stop: stopOf(finish), RawStop: finish, Usage: usage(1, len(t.calls))}
	return cannedAnswer{model: "mock-tool-calls-v1", delay: t.delay, pieces: pieces, end: r}.stream(ctx, req, emit)
}

// usageOnly reports usage and has no text.
type usageOnly struct{ usage provider.Usage }

func newUsageOnly(m *members) provider.Provider {
	return &usageOnly{usage: usageMember(m, usage(1, 0))}
}

func (u *usageOnly) ID() string { return ID }

func (u *usageOnly) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	r := provider.Result{Stop: provider.StopClean, RawStop: "stop", Usage: u.usage}
	return cannedAnswer{model: "mock-usage-only-v1", end: r}.stream(ctx, req, emit)
}

// cannedAnswer is the answer of a canned provider.
type cannedAnswer struct {
	model  string
	delay  time.Duration // before each piece
	pieces []provider.Delta
	end    provider.Result
}

func (a cannedAnswer) stream(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	if err := req.Validate(); err != nil {
		return provider.Result{}, err
	}
	c := provider.NewTokenCollector(a.model, emit)
	for _, d := range a.pieces {
		if err := c.AddAfter(ctx, a.delay, d); err != nil {
			return provider.Result{}, err
		}
	}
	return c.Finish(a.end, a.end.RawStop)
}
