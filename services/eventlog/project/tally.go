package project

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/fold"
	"waybill.dev/waybill/services/eventlog/tally"
)

// maxTallied limits the names in tallies, in bytes.
const maxTallied = 128

// counter counts what a run adds to the tallies of its workflow. Model calls and answers are counted
// from the fold that the API shows, as its executions end.
type counter struct {
	// fold has the events of nodes that call models; nil before the first of them.
	fold   *fold.Fold
	deltas []tally.Delta
}

// Counted returns what frames applied since the last call add to the tallies.
func (r *Run) Counted() []tally.Delta {
	if r.counter == nil {
		return nil
	}
	deltas := r.counter.deltas
	r.counter.deltas = nil
	return deltas
}

// CountAt lets what the frame at a position adds to the tallies count at another position: a frame of a
// sealed run arrives with its seal.
func (r *Run) CountAt(pos, at uint64) {
	if r.counter == nil {
		return
	}
	for i := range r.counter.deltas {
		if d := &r.counter.deltas[i]; d.Pos == pos {
			d.Pos = at
		}
	}
}

// countCreated counts a new run. One that tries a node alone is no run of its workflow: only its calls
// count, because they cost money.
func (r *Run) countCreated(f *frame.Frame) {
	r.counter = &counter{}
	if r.State.Record.Only() != "" {
		return
	}
	r.add(f, r.createdAt, tally.Tally{Runs: tally.Runs{Created: 1}})
}

// countEvent counts an event that the state has applied. f is nil for stored events, which the store
// has counted: they only continue the fold.
func (r *Run) countEvent(f *frame.Frame, e wire.Event, before wire.Status) {
	if r.counter == nil {
		return
	}
	tries := r.State.Record.Only() != ""
	if f != nil && !tries && !before.Terminal() && r.State.Status.Terminal() {
		r.countEnd(f, e.Timestamp)
	}
	if !r.concernsModel(e) {
		return
	}
	if r.counter.fold == nil {
		r.counter.fold = fold.New(r.ID.RunID, r.createdAt)
	}
	calls, ended := r.counter.fold.Ended(e)
	// The source of a fork has counted the copied history; a replay calls no models.
	if fork := r.State.Record.Fork; f == nil || r.State.Record.Replays() || fork != nil && e.Sequence < fork.Ends() {
		return
	}
	var t tally.Tally
	for _, c := range calls {
		countCall(&t, c)
	}
	if ended != nil {
		if !tries {
			countExecution(&t, ended)
		}
		countProviderError(&t, e)
	}
	if len(t.Models)+len(t.Refusals)+len(t.Errors) > 0 {
		r.add(f, e.Timestamp, t)
	}
}

func (r *Run) add(f *frame.Frame, timestamp string, t tally.Tally) {
	at, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		at = f.Stored
	}
	r.counter.deltas = append(r.counter.deltas, tally.Delta{
		Pos: f.Pos, Tenant: r.ID.Tenant, WorkflowID: r.ID.WorkflowID, At: at, Tally: t,
	})
}

// concernsModel reports whether the fold of answers needs the event: those of nodes that call models,
// and of external executors, whose nodes have no type. Text while it streams does not change counts.
func (r *Run) concernsModel(e wire.Event) bool {
	switch e.Type {
	case wire.EventOutputChunk, wire.EventAgentReasoningDelta:
		return false
	default:
	}
	if e.NodeID == "" {
		return false
	}
	n := r.State.Nodes[e.NodeID]
	return n == nil || n.TypeID == "" || strings.HasPrefix(n.TypeID, "core.ai.")
}

// countEnd counts the end of the run.
func (r *Run) countEnd(f *frame.Frame, timestamp string) {
	var t tally.Tally
	s := r.State
	switch s.Status {
	case wire.StatusCompleted:
		t.Completed = 1
		if ms := elapsed(s.StartedAt, s.CompletedAt); ms != nil {
			t.Took.Add(*ms)
		}
	case wire.StatusFailed:
		t.Failed = 1
		code := string(fault.InternalError)
		if s.Error != nil && s.Error.Code != "" {
			code = s.Error.Code
		}
		t.Code(cut(code, maxTallied), 1)
	default:
		t.Cancelled = 1
	}
	r.add(f, timestamp, t)
}

func modelOf(provider, model string) tally.Model {
	return tally.Model{Provider: cut(provider, maxTallied), Model: cut(model, maxTallied)}
}

func countCall(t *tally.Tally, c *view.CostCall) {
	m := t.Of(modelOf(c.Provider, c.Model))
	m.Calls++
	if c.InputTokens == nil || c.OutputTokens == nil {
		m.Unknown++
	}
	m.Input += tokens(c.InputTokens)
	m.Output += tokens(c.OutputTokens)
	m.Cached += tokens(c.CachedTokens)
	m.Reasoning += tokens(c.ReasoningTokens)
	var cost tally.Nanos
	if c.Cost != nil && !math.IsInf(*c.Cost, 0) {
		m.Priced++
		cost = tally.Dollars(*c.Cost)
	}
	m.Cost += cost
	if c.Retry {
		m.Retries++
		m.RetryCost += cost
	}
}

func tokens(n *big.Int) int64 {
	switch {
	case n == nil || n.Sign() < 0:
		return 0
	case !n.IsInt64():
		return math.MaxInt64
	default:
		return n.Int64()
	}
}

// countExecution counts the answers of an execution that has ended.
func countExecution(t *tally.Tally, x *view.Execution) {
	if x.Result == view.ResultBranched || len(x.Calls) == 0 {
		return
	}
	corrected, refused, kind := false, 0, accepted(x)
	var last tally.Model
	for _, c := range x.Calls {
		last = callee(x, c)
		if c.TookMs != nil {
			t.Of(last).Took.Add(*c.TookMs)
		}
		refused += countRefusals(t, c, last, kind)
		corrected = corrected || c.Cause == view.CauseRetry || c.Cause == view.CauseProse
	}
	// Without a refusal, an execution that was not completed had no answer, such as after a provider's
	// error.
	if x.Result == view.ResultCancelled || x.Result != view.ResultCompleted && refused == 0 || last == (tally.Model{}) {
		return
	}
	m := t.Of(last)
	m.Answers++
	if x.Choice != "" {
		m.Fallbacks++
	}
	if x.Result != view.ResultCompleted {
		return
	}
	if x.Choice != "" {
		m.Saved++
	}
	if corrected {
		m.Corrected++
	} else {
		m.First++
	}
}

// Refusals counts why answers of an execution were not accepted.
func Refusals(x *view.Execution) map[tally.Refusal]int64 {
	var t tally.Tally
	kind := accepted(x)
	for _, c := range x.Calls {
		countRefusals(&t, c, callee(x, c), kind)
	}
	return t.Refusals
}

// accepted returns the kind of an accepted envelope of an execution, of which refused answers often
// lack it; empty if there is none.
func accepted(x *view.Execution) string {
	for _, c := range x.Calls {
		for _, e := range c.Envelopes {
			if e.Stop() == nil && e.Kind != "" {
				return e.Kind
			}
		}
	}
	return ""
}

// callee returns the model of a call.
func callee(x *view.Execution, c *view.Call) tally.Model {
	if c.Usage != nil {
		return modelOf(c.Usage.Provider, c.Usage.Model)
	}
	if x.Substitution != nil {
		return modelOf(x.Substitution.To.Provider, x.Substitution.To.Model)
	}
	for _, other := range x.Calls {
		if other.Usage != nil {
			return modelOf(other.Usage.Provider, other.Usage.Model)
		}
	}
	return tally.Model{}
}

// countRefusals counts why documents of a call's answer were not accepted, and returns their number.
func countRefusals(t *tally.Tally, c *view.Call, m tally.Model, kind string) (n int) {
	add := func(r tally.Refusal) {
		r.Model, r.Kind = m, cut(r.Kind, maxTallied)
		r.Code, r.Reason = cut(r.Code, maxTallied), cut(r.Reason, maxTallied)
		t.Refuse(r, 1)
		n++
	}
	reason := ""
	switch {
	case c.Refusal != nil:
		add(tally.Refusal{Kind: kind, Code: string(fault.EnvelopeRefusal), Reason: "refusal"})
		return n
	case c.Truncated != nil:
		reason = "truncation"
	case c.Failure != nil:
		reason = c.Failure.Reason
	}
	for _, e := range c.Envelopes {
		if stop := e.Stop(); stop != nil {
			add(tally.Refusal{
				Kind: cmp.Or(e.Kind, stop.RefusedKind, kind), Gate: string(stop.Name), Code: stop.Code, Reason: cmp.Or(reason, stop.Code),
			})
		}
	}
	if n == 0 && reason != "" { // no document reached a gate
		add(tally.Refusal{Kind: kind, Reason: reason})
	}
	return n
}

// countProviderError counts an attempt that failed because of a provider.
func countProviderError(t *tally.Tally, e wire.Event) {
	for _, f := range failuresOf(e) {
		if f.Details.Provider != "" {
			t.Err(tally.ProviderError{Provider: cut(f.Details.Provider, maxTallied), Code: cut(f.Code, maxTallied)}, 1)
			return
		}
	}
}

// failure is the error of a node that failed or will be retried.
type failure struct {
	Code    string `json:"code"`
	Details struct {
		Provider    string `json:"provider"`
		RefusedType string `json:"refusedType"`
	} `json:"details"`
}

// failuresOf returns the errors in node.failed and node.retried; none in other events, and in
// unreadable payloads.
func failuresOf(e wire.Event) []failure {
	if e.Type != wire.EventNodeFailed && e.Type != wire.EventNodeRetried {
		return nil
	}
	var p struct {
		Error     failure `json:"error"`
		LastError failure `json:"lastError"`
	}
	_ = json.Unmarshal(e.Payload, &p)
	return []failure{p.Error, p.LastError}
}
