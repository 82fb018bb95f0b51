// Package mock holds the providers of the protocol's test seams. One is scripted by tests; the
// canned ones are selected by a run's configurable.mockProvider. They exist only while test seams
// are served.
//
// OpenWOP envelope contract §23.3, OpenWOP host contract §2.3 and Appendix A.
package mock

import (
	"context"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// ID is the provider's id. It accepts any model name.
const ID = "mock"

// Entry is the answer to one call (OpenWOP envelope contract §23.3).
type Entry struct {
	// StopReason is end_turn (default), max_tokens, length, stop_sequence or safety.
	StopReason string `json:"stopReason,omitempty"`
	Content    string `json:"content,omitempty"`
	// RefusalText, when set, makes the answer a refusal.
	RefusalText string `json:"refusalText,omitempty"`
	// OutputTokens and InputTokens default to 50 and 100.
	OutputTokens int `json:"outputTokens,omitempty"`
	InputTokens  int `json:"inputTokens,omitempty"`
	// Panic, when set, is the value of a panic in the call, to test faults of a provider.
	Panic string `json:"panic,omitempty"`
}

const (
	defaultOutputTokens = 50
	defaultInputTokens  = 100
)

// Provider answers from scripts: each call uses the next entry of its node.
type Provider struct{ scripts Scripts }

// New returns a provider over scripts.
func New(scripts Scripts) *Provider { return &Provider{scripts: scripts} }

// ID names the provider.
func (p *Provider) ID() string { return ID }

// Call returns the next entry of the node's script in one piece. An exhausted script returns an
// empty answer.
func (p *Provider) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	if err := req.Validate(); err != nil {
		return provider.Result{}, err
	}
	e, err := p.scripts.Take(ctx, req.Tenant, req.NodeID, req.MaxTokens)
	if err != nil {
		return provider.Result{}, &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the script cannot be reached",
			Retryable: true,
		}
	}
	if e.Panic != "" {
		panic(e.Panic)
	}
	c := provider.NewTokenCollector(req.Model, emit)
	if err := c.Add(provider.Delta{Text: e.Content}); err != nil {
		return provider.Result{}, err
	}
	r := e.result()
	return c.Finish(r, provider.FinishReason(r.Stop))
}

func (e Entry) result() provider.Result {
	r := provider.Result{
		Stop: e.stop(), RawStop: orDefault(e.StopReason, "end_turn"), RefusalText: e.RefusalText,
		Usage: usage(orDefault(e.InputTokens, defaultInputTokens), orDefault(e.OutputTokens, defaultOutputTokens)),
	}
	if r.Stop == provider.StopRefused {
		r.SafetyCategory = "safety"
	}
	return r
}

// stop classifies the entry (OpenWOP envelope contract §14.1).
func (e Entry) stop() provider.StopClass {
	if e.RefusalText != "" {
		return provider.StopRefused
	}
	switch e.StopReason {
	case "", "end_turn":
		return provider.StopClean
	case "max_tokens", "length":
		return provider.StopTruncated
	case "stop_sequence":
		return provider.StopSequence
	case "safety":
		return provider.StopRefused
	default:
		return provider.StopUnknown
	}
}

func usage(in, out int) provider.Usage {
	return provider.Usage{InputTokens: in, OutputTokens: out, TotalTokens: in + out, Known: true}
}

// orDefault returns v, or def if v is the zero value.
func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
