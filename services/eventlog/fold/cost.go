package fold

import (
	"cmp"
	"math/big"
	"slices"

	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
)

// costs folds the usage of a run's model calls: one per provider.usage event, and one per call that
// ended without it.
type costs struct {
	calls []*view.CostCall
	nodes map[string]*costNode
}

type costNode struct {
	// attempt is the node's attempt, calls the number of its calls with usage.
	attempt, calls int
	// silent is a finished answer whose usage is not reported yet.
	silent *view.CostCall
	// reasoning is the count that was reported for the next usage; nil for none.
	reasoning *big.Int
}

func (c *costs) add(e wire.Event, p *payload, id string) {
	n, ok := c.nodes[id]
	if !ok {
		n = &costNode{}
		c.nodes[id] = n
	}
	call := func(u view.Usage) *view.CostCall {
		return &view.CostCall{
			Usage: u, Sequence: e.Sequence, NodeID: id, Attempt: n.attempt, Retry: n.calls > 0 || n.attempt > 0,
		}
	}
	switch e.Type {
	case "node.started":
		n.attempt, n.calls = whole(p.Attempt), 0
	case "output.chunk":
		if p.IsLast {
			n.silent = call(view.Usage{Provider: p.Meta.Provider, Model: p.Meta.Model})
		}
	case "log.appended":
		n.reasoning = cmp.Or(reasoningOf(p), n.reasoning)
	case "provider.usage":
		n.silent = nil
		c.calls = append(c.calls, call(usageOf(p, n.reasoning)))
		n.reasoning = nil
		n.calls++
	case "envelope.retry.attempted", "node.completed", "node.failed":
		if n.silent != nil {
			c.calls = append(c.calls, n.silent)
		}
		n.silent = nil
	}
}

// usageOf returns the usage of a call. reasoning was reported before it; nil for none.
func usageOf(p *payload, reasoning *big.Int) view.Usage {
	return view.Usage{
		Provider: p.Provider, Model: p.Model, Cost: amount(p.CostEstimateUSD), Currency: cmp.Or(p.Currency, "USD"),
		InputTokens: count(p.InputTokens), OutputTokens: count(p.OutputTokens), CachedTokens: count(p.CacheReadTokens),
		ReasoningTokens: reasoning,
	}
}

// reasoningOf returns the count in a log entry about the next usage; nil in others.
func reasoningOf(p *payload) *big.Int {
	if p.Fields.Reason != wire.ReasonModelUsage {
		return nil
	}
	return count(p.Fields.ReasoningTokens)
}

func (c *costs) view() view.Cost {
	out := view.Cost{Calls: append([]*view.CostCall{}, c.calls...)}
	slices.SortFunc(out.Calls, func(a, b *view.CostCall) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, call := range out.Calls {
		addTo(&out.Total, call)
		if call.Retry {
			addTo(&out.Retries, call)
		}
	}
	return out
}

func addTo(s *view.Sum, c *view.CostCall) {
	s.Calls++
	if c.InputTokens == nil || c.OutputTokens == nil {
		s.Unknown++
	}
	s.InputTokens = plus(s.InputTokens, c.InputTokens)
	s.OutputTokens = plus(s.OutputTokens, c.OutputTokens)
	s.CachedTokens = plus(s.CachedTokens, c.CachedTokens)
	s.ReasoningTokens = plus(s.ReasoningTokens, c.ReasoningTokens)
	s.Currency = cmp.Or(s.Currency, c.Currency)
	if c.Cost != nil {
		sum := *c.Cost
		if s.Cost != nil {
			sum += *s.Cost
		}
		s.Cost = &sum
	}
}

// plus adds a value to a sum of known values; nil: none is known.
func plus(sum, n *big.Int) *big.Int {
	switch {
	case n == nil:
		return sum
	case sum == nil:
		return n
	default:
		return new(big.Int).Add(sum, n)
	}
}
