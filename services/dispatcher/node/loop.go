package node

import (
	"encoding/json"
	"strconv"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/expr"
)

const (
	// MaxLoopIterations is the host's limit on the rounds of core.loop. A workflow can only lower
	// it.
	MaxLoopIterations = 1000
	// defaultLoop is the default of a workflow's maxLoopbackIterations.
	defaultLoop = 5
	// loopCost limits all rounds of a loop together.
	loopCost = 10 * expr.MaxCost
)

// loopRun is one execution of core.loop. Workflows have no cycles, so a loop is one node. It
// evaluates an expression for each item, a number of times, or until another expression holds.
type loopRun struct {
	in          Input
	body, until *expr.Program
	values      *expr.Values
	items       []json.RawMessage
	counted     bool // items or a count give the number of rounds
	total       int64
	limit       int64
	cost        expr.Cost
	bytes       int
	acc         json.RawMessage
	folds       bool // acc has an initial value
	results     []json.RawMessage
}

func runLoop(in Input) (Output, *wire.NodeError) {
	cfg, err := readConfig[loopConfig](in.Config)
	if err != nil {
		return Output{}, Invalid("/config: %s", err)
	}
	r := &loopRun{in: in, limit: loopLimit(cfg, in.MaxLoop), acc: json.RawMessage("null")}
	if bad := r.prepare(cfg); bad != nil {
		return Output{Untrusted: r.untrusted()}, bad
	}
	if r.counted && r.until == nil && r.total > r.limit {
		return r.failLimit(r.total)
	}
	for i := int64(0); !r.counted || i < r.total; i++ {
		if i >= r.limit {
			return r.failLimit(i + 1)
		}
		done, bad := r.runRound(i)
		if bad != nil {
			return Output{Untrusted: r.untrusted()}, bad
		}
		if done {
			break
		}
	}
	out := map[string]json.RawMessage{"last": r.acc, "count": strictjson.RenderPlain(len(r.results)), "output": r.acc}
	if !r.folds {
		out["output"] = strictjson.RenderPlain(append([]json.RawMessage{}, r.results...))
	}
	return Output{Ports: out, Untrusted: r.untrusted()}, nil
}

// loopLimit returns the node's own limit, else the workflow's, at most the host's.
func loopLimit(cfg loopConfig, workflows int64) int64 {
	if own, ok := wholeNumber(cfg.MaxIterations); ok && own > 0 {
		return min(own, MaxLoopIterations)
	}
	if workflows <= 0 {
		workflows = defaultLoop
	}
	return min(workflows, MaxLoopIterations)
}

func (r *loopRun) prepare(cfg loopConfig) *wire.NodeError {
	var err error
	if r.body, err = r.in.Flow.Expression(expr.Item, cfg.Expression, false); err != nil {
		return Invalid("/config/expression: %s", err)
	}
	if cfg.Until != nil {
		if r.until, err = r.in.Flow.Expression(expr.Item, *cfg.Until, true); err != nil {
			return Invalid("/config/until: %s", err)
		}
	}
	if cfg.Initial != nil {
		r.acc, r.folds = cfg.Initial, true
	}
	if bad := r.countRounds(cfg); bad != nil {
		return bad
	}
	r.values = expr.NewValues(r.in.roots(), nil, r.body, r.until)
	return nil
}

// countRounds reads the items, or the number of rounds without items.
func (r *loopRun) countRounds(cfg loopConfig) *wire.NodeError {
	for _, given := range []struct {
		raw json.RawMessage
		at  string
	}{
		{r.in.Ports["items"], "port items"},
		{cfg.Items, "/config/items"},
		{r.in.Ports["count"], "port count"},
		{cfg.Count, "/config/count"},
		{r.in.Ports["input"], "port input"},
	} {
		switch {
		case given.raw == nil:
			continue
		case given.at == "port count" || given.at == "/config/count":
			n, ok := wholeNumber(given.raw)
			if !ok || n < 0 {
				return Invalid("%s: want an integer of at least 0", given.at)
			}
			r.counted, r.total = true, n
		case given.at == "port input" && r.until != nil:
			return nil // a value to work on, not a list to walk
		default:
			if json.Unmarshal(given.raw, &r.items) != nil || r.items == nil {
				return Invalid("%s: want an array, the items to loop over", given.at)
			}
			r.counted, r.total = true, int64(len(r.items))
		}
		return nil
	}
	if r.until == nil {
		return Invalid("nothing says how often to loop: items or count, as a port or in the config, or until in the config")
	}
	return nil
}

// runRound evaluates the expression once. done means that until holds.
func (r *loopRun) runRound(i int64) (done bool, bad *wire.NodeError) {
	item := json.RawMessage("null")
	if r.items != nil {
		item = r.items[i]
	}
	r.values.Set("item", item)
	r.values.SetInt("index", i)
	r.values.Set("acc", r.acc)
	v, cost, err := r.body.Eval(r.values)
	if err != nil {
		return false, Invalid("/config/expression, round %s: %s", strconv.FormatInt(i, 10), err)
	}
	r.cost += cost
	r.acc, r.results = v, append(r.results, v)
	if r.bytes += len(v); r.bytes > expr.MaxResult && !r.folds {
		return false, Invalid("the rounds give more than %d bytes of JSON together", expr.MaxResult)
	}
	if r.until != nil {
		r.values.Set("acc", r.acc)
		if done, cost, err = r.until.Holds(r.values); err != nil {
			return false, Invalid("/config/until, round %s: %s", strconv.FormatInt(i, 10), err)
		}
		r.cost += cost
	}
	if r.cost > loopCost {
		return false, Invalid("the rounds cost more than %d steps together", loopCost)
	}
	return done, nil
}

// failLimit fails the node for going on beyond its bound.
func (r *loopRun) failLimit(observed int64) (Output, *wire.NodeError) {
	e := fault.New(fault.LoopLimit, "the loop may go round %d times, and would more often; raise maxIterations of its config (at most %d) or maxLoopbackIterations of the workflow's settings",
		r.limit, MaxLoopIterations)
	return Output{
		Untrusted: r.untrusted(),
		Loop:      &Loop{Limit: r.limit, Observed: observed},
	}, &wire.NodeError{Code: string(e.Code), Message: e.Message}
}

func (r *loopRun) untrusted() bool {
	for _, p := range []*expr.Program{r.body, r.until} {
		if p != nil && r.in.readsUntrusted(p.Reads()["variables"]) {
			return true
		}
	}
	return false
}

// wholeNumber reads an integer in any notation.
func wholeNumber(raw json.RawMessage) (int64, bool) {
	var f float64
	if raw == nil || json.Unmarshal(raw, &f) != nil || string(raw) == "null" || f != float64(int64(f)) || f > 1<<53 || f < -(1<<53) {
		return 0, false
	}
	return int64(f), true
}
