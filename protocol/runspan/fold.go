package runspan

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/cost"
	"waybill.dev/waybill/protocol/wire"
)

// Fold turns a run's events into its spans. It is fed in order; whoever feeds it
// the same events gets the same spans, whatever process that is. It belongs to
// one goroutine.
type Fold struct {
	rec   *wire.RunRecord
	trace TraceID
	run   *Span
	nodes map[string]*node
	ended []*Span
	// asks are the suspensions that go on, by interruptId, and asked how many each node
	// has had.
	asks  map[string]question
	asked map[string]int
	// accepted are the accepts that the log tells of, by correlationId. Whoever
	// accepted has exported them.
	accepted map[string]*Span
}

// node is a node that has been started.
type node struct {
	span, attempt *Span
	number        int // of the attempt
	calls         int // of the attempt
	since         time.Time
}

// New begins the spans of a run. The run's own begins with its record: it waited
// for an executor from then on.
func New(rec *wire.RunRecord) *Fold {
	f := &Fold{rec: rec, nodes: map[string]*node{}, asks: map[string]question{}, asked: map[string]int{}, accepted: map[string]*Span{}}
	var parent SpanID
	f.trace, parent = TraceOf(rec.RunID, rec.Traceparent)
	f.run = &Span{
		Name: NameRun, Trace: f.trace, ID: RunSpan(rec.RunID), Parent: parent, Kind: KindInternal, Code: Unset, Start: parse(rec.CreatedAt),
		Attributes: map[string]any{
			"openwop.run_id": rec.RunID, "openwop.workflow_id": rec.WorkflowID,
			"openwop.protocol_version": wire.ProtocolVersion, "openwop.tenant_id": rec.Owner.Tenant,
		},
	}
	if rec.ScopeID != "" {
		f.run.Attributes["openwop.scope_id"] = rec.ScopeID
	}
	if p := rec.Parent; p != nil {
		f.run.Attributes["openwop.parent.run_id"] = p.RunID
		f.run.Attributes["openwop.parent.workflow_id"] = p.WorkflowID
		f.run.Attributes["openwop.parent.node_id"] = p.NodeID
	}
	if len(rec.Tags) > 0 {
		f.run.Attributes["openwop.run.tags"] = slices.Clone(rec.Tags)
	}
	f.follow(rec.Fork)
	return f
}

// All gives every span of the run so far, those that go on included, in the
// order they began.
func (f *Fold) All() []*Span {
	out := append([]*Span{f.run}, f.ended...)
	for _, n := range f.nodes {
		out = append(out, n.open()...)
	}
	for _, q := range f.asks {
		out = append(out, q.span)
	}
	for _, s := range f.accepted {
		out = append(out, s)
	}
	if f.run.Ended() { // it is among those that have ended
		out = out[1:]
	}
	slices.SortStableFunc(out, func(a, b *Span) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return out
}

// rank orders spans that begin together: parents first.
func rank(s *Span) int {
	switch {
	case s.Name == NameRun:
		return 0
	case strings.HasSuffix(s.Name, suffixTry):
		return 2
	case strings.HasPrefix(s.Name, NameNode):
		return 1
	default:
		return 3
	}
}

func (n *node) open() []*Span {
	var out []*Span
	for _, s := range []*Span{n.span, n.attempt} {
		if s != nil && !s.Ended() {
			out = append(out, s)
		}
	}
	return out
}

// event is the union of the members that spans are made of.
type event struct {
	TypeID           string          `json:"typeId"`
	NodeID           string          `json:"nodeId"`
	Attempt          int             `json:"attempt"`
	Error            *wire.NodeError `json:"error"`
	LastError        *wire.NodeError `json:"lastError"`
	Provider         string          `json:"provider"`
	InputTokens      int64           `json:"inputTokens"`
	OutputTokens     int64           `json:"outputTokens"`
	TotalTokens      int64           `json:"totalTokens"`
	CostEstimateUSD  *float64        `json:"costEstimateUsd"`
	Currency         string          `json:"currency"`
	Reason           string          `json:"reason"`
	TotalAttempts    int64           `json:"totalAttempts"`
	FinalReason      string          `json:"finalReason"`
	SafetyCategory   string          `json:"safetyCategory"`
	StopReason       string          `json:"stopReason"`
	OutputTokenCount *int64          `json:"outputTokenCount"`
	FallbackCalls    int64           `json:"fallbackCalls"`
	Path             string          `json:"path"`
	ByteOffset       *int64          `json:"byteOffset"`
	Kind             string          `json:"kind"`
	Limit            int64           `json:"limit"`
	Observed         int64           `json:"observed"`
	InterruptID      string          `json:"interruptId"`
	ArtifactID       string          `json:"artifactId"`
	ArtifactType     string          `json:"artifactType"`
	Fields           stamp           `json:"fields"`
	Envelope         stamp           `json:"envelope"`
}

// stamp is what the first event of an envelope that is no artifact says of it.
type stamp struct {
	EnvelopeType string `json:"envelopeType"`
	EnvelopeID   string `json:"envelopeId"`
}

// Apply takes the run's next event and gives the spans that it ends.
func (f *Fold) Apply(e wire.Event) []*Span {
	before := len(f.ended)
	var p event
	_ = json.Unmarshal(e.Payload, &p) // an unreadable payload folds as an empty one
	if p.NodeID == "" {
		p.NodeID = e.NodeID
	}
	at := parse(e.Timestamp)
	switch e.Type {
	case wire.EventNodeStarted:
		f.started(p, at, e.Sequence)
	case wire.EventNodeCompleted, wire.EventNodeSkipped:
		f.closed(p.NodeID, at, OK, "")
	case wire.EventNodeFailed:
		f.closed(p.NodeID, at, Error, codeOf(p.Error))
	case wire.EventNodeCancelled:
		f.closed(p.NodeID, at, Error, "cancelled")
	case wire.EventNodeRetried:
		f.tried(p.NodeID, at, codeOf(p.LastError))
	case wire.EventInterruptRequested:
		f.ask(p, at)
	case wire.EventInterruptResolved:
		f.resolve(p, at)
	case wire.EventProviderUsage:
		f.called(p, at)
	case wire.EventLogAppended:
		f.cost(e, p.NodeID)
	case wire.EventRunCompleted:
		f.over(at, OK, "")
	case wire.EventRunFailed:
		f.over(at, Error, codeOf(p.Error))
	case wire.EventRunCancelled:
		f.over(at, Error, "cancelled")
	case wire.EventReplayDiverged:
		f.diverged(e)
	case wire.EventCapBreached:
		f.happened(p.NodeID, e.Type, at, map[string]any{"openwop.cap_kind": p.Kind, "openwop.cap_limit": p.Limit, "openwop.cap_observed": p.Observed})
	default:
		if a := reliability(e.Type, p); a != nil {
			f.happened(p.NodeID, e.Type, at, a)
		}
	}
	if e.CausationID != "" {
		f.accept(e, p, at)
	}
	if n := f.nodes[p.NodeID]; n != nil {
		n.since = at
	}
	return f.ended[before:]
}

func codeOf(e *wire.NodeError) string {
	if e == nil {
		return ""
	}
	return e.Code
}

// started begins an attempt of a node, and the node with its first one.
func (f *Fold) started(p event, at time.Time, seq int) {
	n := f.nodes[p.NodeID]
	attributes := func() map[string]any {
		return map[string]any{
			"openwop.run_id": f.rec.RunID, "openwop.node_id": p.NodeID, "openwop.node_type": p.TypeID,
			"openwop.node_attempt": int64(p.Attempt), "openwop.event_seq": int64(seq),
		}
	}
	if n == nil || n.span.Ended() {
		n = &node{span: &Span{
			Name: NameNode + p.TypeID, Trace: f.trace, ID: NodeSpan(f.rec.RunID, p.NodeID), Parent: f.run.ID,
			Kind: KindInternal, Code: Unset, Start: at, Attributes: attributes(),
		}}
		f.nodes[p.NodeID] = n
	}
	n.number, n.calls = p.Attempt, 0
	n.span.Attributes["openwop.node_attempt"] = int64(p.Attempt)
	n.attempt = &Span{
		Name: n.span.Name + suffixTry, Trace: f.trace, ID: AttemptSpan(f.rec.RunID, p.NodeID, p.Attempt), Parent: n.span.ID,
		Kind: KindInternal, Code: Unset, Start: at, Attributes: attributes(),
	}
}

// tried ends an attempt that another one follows.
func (f *Fold) tried(nodeID string, at time.Time, code string) {
	if n := f.nodes[nodeID]; n != nil && n.attempt != nil && !n.attempt.Ended() {
		f.finish(n.attempt, at, Error, code)
	}
}

// closed ends a node.
func (f *Fold) closed(nodeID string, at time.Time, code Code, message string) {
	f.unasked(func(of string) bool { return of == nodeID }, at, code, message)
	n := f.nodes[nodeID]
	if n == nil {
		return // skipped or cancelled before it began
	}
	for _, s := range []*Span{n.attempt, n.span} {
		if !s.Ended() {
			f.finish(s, at, code, message)
		}
	}
}

// over ends the run, and what of it was cut short.
func (f *Fold) over(at time.Time, code Code, message string) {
	for _, id := range slices.Sorted(maps.Keys(f.nodes)) {
		f.closed(id, at, code, message)
	}
	f.unasked(func(string) bool { return true }, at, code, message)
	f.finish(f.run, at, code, message)
}

func (f *Fold) finish(s *Span, at time.Time, code Code, message string) {
	s.end(at, code, message)
	f.ended = append(f.ended, s)
}

// called adds the span of a model call. The log tells when its answer was
// there; it began when the node did what it did before.
func (f *Fold) called(p event, at time.Time) {
	n := f.nodes[p.NodeID]
	if n == nil || n.attempt == nil {
		return
	}
	told := costOf(p)
	for _, s := range []*Span{n.attempt, n.span, f.run} {
		addCost(s.Attributes, told)
	}
	attributes := map[string]any{"openwop.run_id": f.rec.RunID, "openwop.node_id": p.NodeID}
	addCost(attributes, told)
	s := &Span{
		Name: NameCall + p.Provider, Trace: f.trace, ID: CallSpan(f.rec.RunID, p.NodeID, n.number, n.calls), Parent: n.attempt.ID,
		Kind: KindClient, Start: n.since, Attributes: attributes,
	}
	n.calls++
	f.finish(s, at, OK, "")
}

// cost adds what a node says that it has cost besides calls of models. Whatever is not
// on the closed list stays out of every span (OpenWOP host contract §10.2).
func (f *Fold) cost(e wire.Event, nodeID string) {
	n := f.nodes[nodeID]
	if n == nil || n.attempt == nil || e.CausationID != "" {
		return
	}
	var p struct {
		Fields json.RawMessage `json:"fields"`
	}
	_ = json.Unmarshal(e.Payload, &p)
	for _, s := range []*Span{n.attempt, n.span, f.run} {
		addCost(s.Attributes, cost.Sanitize(p.Fields))
	}
}

// accept notes the accept of an envelope whose first event this is.
func (f *Fold) accept(e wire.Event, p event, at time.Time) {
	kind, id := p.ArtifactType, p.ArtifactID
	for _, s := range []stamp{p.Fields, p.Envelope} {
		if kind == "" {
			kind, id = s.EnvelopeType, s.EnvelopeID
		}
	}
	if _, known := f.accepted[e.CausationID]; known || kind == "" {
		return
	}
	s := &Span{
		Name: NameAccept, Trace: f.trace, ID: AcceptSpan(f.rec.RunID, e.CausationID), Parent: f.run.ID, Kind: KindServer, Code: OK, Start: at, End: at,
		Attributes: map[string]any{
			"openwop.run_id": f.rec.RunID, "openwop.node_id": e.NodeID, "openwop.envelope_kind": kind, "openwop.envelope_id": id,
			"envelope_correlation_id": e.CausationID, "envelope_outcome": "accepted", "envelope_content_trust": string(e.ContentTrust.Meet(wire.Trusted)),
		},
	}
	if n := f.nodes[e.NodeID]; n != nil && n.attempt != nil {
		s.Parent = n.attempt.ID
	}
	f.accepted[e.CausationID] = s
}

// Append is the span of an append of the events, which took from start to end.
func (f *Fold) Append(events []wire.Event, start, end time.Time) *Span {
	types := make([]string, 0, len(events))
	for _, e := range events {
		types = append(types, string(e.Type))
	}
	return &Span{
		Name: NameAppend, Trace: f.trace, ID: AppendSpan(f.rec.RunID, events[0].Sequence), Parent: f.run.ID, Kind: KindInternal, Code: OK,
		Start: start, End: end,
		Attributes: map[string]any{
			"openwop.run_id": f.rec.RunID, "openwop.event_type": strings.Join(types, ","), "openwop.event_seq": int64(events[0].Sequence),
		},
	}
}

// happened adds an event to the span of the node's attempt, or to the run's.
func (f *Fold) happened(nodeID string, t wire.EventType, at time.Time, attributes map[string]any) {
	s := f.run
	if n := f.nodes[nodeID]; n != nil && n.attempt != nil {
		s = n.attempt
	}
	s.Events = append(s.Events, Moment{Name: string(t), At: at, Attributes: attributes})
}

func parse(timestamp string) time.Time {
	t, err := time.Parse(time.RFC3339, timestamp)
	if err != nil {
		return time.Time{}
	}
	return t
}
