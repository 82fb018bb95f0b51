// Package mock holds the providers of the protocol's test seams: a scripted one
// that a test programs answer by answer, and the canned ones that a run selects
// with configurable.mockProvider. Both are routable only while test seams are
// served.
//
// OpenWOP envelope contract §23.3, OpenWOP host contract §2.3 and Appendix A.
package mock

import (
	"context"
	"slices"
	"sync"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// ID is the provider's id; any model of it answers.
const ID = "mock"

// Entry is the answer to one call (OpenWOP envelope contract §23.3).
type Entry struct {
	// StopReason is end_turn (default), max_tokens, length, stop_sequence or safety.
	StopReason string
	Content    string
	// RefusalText, when set, makes the answer a refusal.
	RefusalText string
	// OutputTokens and InputTokens default to 50 and 100.
	OutputTokens, InputTokens int
}

const (
	defaultOutputTokens = 50
	defaultInputTokens  = 100
	// maxNodes bounds the node ids whose script or budget is remembered: a test
	// host that is never reset must not grow for ever.
	maxNodes = 10_000
)

// Provider answers from scripts: a queue of entries for each node id, over all
// runs. Each call takes the next one. It is safe for concurrent use.
type Provider struct {
	mu      sync.Mutex // guards scripts and budgets
	scripts map[string][]Entry
	budgets map[string]int
}

// New is a provider without scripts: it answers with nothing.
func New() *Provider {
	return &Provider{scripts: map[string][]Entry{}, budgets: map[string]int{}}
}

// ID names the provider.
func (p *Provider) ID() string { return ID }

// Program replaces the script of a node id. The entries are copied.
func (p *Provider) Program(nodeID string, entries []Entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	put(p.scripts, nodeID, slices.Clone(entries))
}

// Reset drops all scripts and budgets and tells how many scripts there were.
func (p *Provider) Reset() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.scripts)
	clear(p.scripts)
	clear(p.budgets)
	return n
}

// LastBudget is the MaxTokens of a node's latest call; ok is false without one.
func (p *Provider) LastBudget(nodeID string) (tokens int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	tokens, ok = p.budgets[nodeID]
	return tokens, ok
}

// Call answers with the next entry of the node's script; an exhausted script
// gives an empty answer. The answer is one piece.
func (p *Provider) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	if err := req.Validate(); err != nil {
		return provider.Result{}, err
	}
	e := p.take(req)
	c := provider.NewCollector(req.Model, emit)
	if err := c.Add(provider.Delta{Text: e.Content}); err != nil {
		return provider.Result{}, err
	}
	r := e.result()
	return c.Finish(r, provider.FinishReason(r.Stop))
}

// take removes the next entry of the node's script and notes the call's budget.
func (p *Provider) take(req provider.Request) Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	put(p.budgets, req.NodeID, req.MaxTokens)
	script := p.scripts[req.NodeID]
	if len(script) == 0 {
		return Entry{}
	}
	p.scripts[req.NodeID] = script[1:]
	return script[0]
}

// put sets a key; a full map loses any other one first.
func put[V any](m map[string]V, key string, v V) {
	if _, known := m[key]; !known && len(m) >= maxNodes {
		for victim := range m {
			delete(m, victim)
			break
		}
	}
	m[key] = v
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

// orDefault is v, or def when v is the zero value.
func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
