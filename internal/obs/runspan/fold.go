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

// Fold derives a run's spans from its events, applied in order. The same events yield the same
// spans in every process. A Fold belongs to one goroutine.
type Fold struct {
	rec   *wire.RunRecord
	trace TraceID
	run   *Span
	nodes map[string]*node
	ended []*Span
	// open are the open suspensions by interruptId; asked counts the suspensions of each node.
	open  map[string]question
	asked map[string]int
	// accepted are the recorded accepts, by correlationId. The acceptor has exported their spans.
	accepted map[string]*Span
	options  Options
	// requested are the models that replace nodes' own, by node.
	requested map[string]modelName
}

// node is a started node.
type node struct {
	span, attempt *Span
	number        int // number of the attempt
	calls         int // model calls of the attempt
	since         time.Time
	// form is the form in which the model of the next call got its schema; empty for its own.
	form string
	// reasoning is the number of tokens that the model of the next call used to think; nil if unknown.
	reasoning *int64
	// answered is the last model call, until the next event has the end of its answer.
	answered *modelCall
	// said is the logged data of the next call.
	said answerText
}

// New starts the spans of a run. The run's own span starts with its record, so it includes the time
// in
// the queue.
func New(rec *wire.RunRecord, o Options) *Fold {
	f := &Fold{
		rec:      rec,
		options:  o,
		nodes:    map[string]*node{},
		open:     map[string]question{},
		asked:    map[string]int{},
		accepted: map[string]*Span{},

		requested: map[string]modelName{},
	}
	var parent SpanID
	f.trace, parent = TraceOf(rec.RunID, rec.Traceparent)
	f.run = &Span{
		Name:   NameRun,
		Trace:  f.trace,
		ID:     RunSpan(rec.RunID),
		Parent: parent,
		Kind:   KindInternal,
		Code:   Unset,
		Start:  parse(rec.CreatedAt),
		Attributes: map[string]any{
			"openwop.run_id": rec.RunID, "openwop.workflow_id": rec.WorkflowID,
			"openwop.protocol_version": wire.ProtocolVersion, "openwop.tenant_id": rec.Owner.Tenant,
			genOperation: operationWorkflow, genWorkflow: rec.WorkflowID,
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

// All returns all spans of the run so far, including open ones, ordered by start.
func (f *Fold) All() []*Span {
	out := append([]*Span{f.run}, f.ended...)
	for _, n := range f.nodes {
		out = append(out, n.open()...)
	}
	for _, q := range f.open {
		out = append(out, q.span)
	}
	for _, s := range f.accepted {
		out = append(out, s)
	}
	if f.run.Ended() { // it is already in ended
		out = out[1:]
	}
	slices.SortStableFunc(out, func(a, b *Span) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return out
}

// rank orders spans with equal start: parents first.
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
	if n.answered != nil {
		out = append(out, n.answered.span)
	}
	return out
}

// event is the union of the payload members used for spans.
type event struct {
	TypeID           string          `json:"typeId"`
	NodeID           string          `json:"nodeId"`
	Attempt          int             `json:"attempt"`
	Error            *wire.NodeError `json:"error"`
	LastError        *wire.NodeError `json:"lastError"`
	Provider         string          `json:"provider"`
	Model            string          `json:"model"`
	InputTokens      int64           `json:"inputTokens"`
	OutputTokens     int64           `json:"outputTokens"`
	TotalTokens      int64           `json:"totalTokens"`
	CacheReadTokens  int64           `json:"cacheReadTokens"`
	CacheWriteTokens int64           `json:"cacheWriteTokens"`
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

	Drift *wire.VersionDrift `json:"schemaVersionDrift"`
}

// stamp identifies the envelope in the first event of an envelope without an artifact.
type stamp struct {
	EnvelopeType string `json:"envelopeType"`
	EnvelopeID   string `json:"envelopeId"`

	Drift *wire.VersionDrift `json:"schemaVersionDrift"`
}

// Apply folds the run's next event and returns the spans that it ends.
func (f *Fold) Apply(e wire.Event) []*Span {
	before := len(f.ended)
	var p event
	_ = json.Unmarshal(e.Payload, &p) // an unreadable payload counts as an empty one
	if p.NodeID == "" {
		p.NodeID = e.NodeID
	}
	at := parse(e.Timestamp)
	f.endCall(e.Type, p)
	switch e.Type {
	case wire.EventNodeStarted:
		f.startAttempt(p, at, e.Sequence)
	case wire.EventNodeCompleted, wire.EventNodeSkipped:
		f.endNode(p.NodeID, at, OK, "")
	case wire.EventNodeFailed:
		f.endNode(p.NodeID, at, Error, codeOf(p.Error))
	case wire.EventNodeCancelled:
		f.endNode(p.NodeID, at, Error, "cancelled")
	case wire.EventModelSubstituted:
		f.substitute(e.Payload, p.NodeID)
	case wire.EventPromptComposed:
		f.noteParts(e.Payload, p.NodeID)
	case wire.EventOutputChunk:
		f.noteParts(e.Payload, p.NodeID)
	case wire.EventNodeRetried:
		f.retryWith(e.Payload, p.NodeID)
		f.endAttempt(p.NodeID, at, codeOf(p.LastError))
	case wire.EventInterruptRequested:
		f.ask(p, at)
	case wire.EventInterruptResolved:
		f.resolve(p, at)
	case wire.EventProviderUsage:
		f.addCall(p, at)
	case wire.EventLogAppended:
		f.cost(e, p.NodeID)
	case wire.EventRunCompleted:
		f.endRun(at, OK, "")
	case wire.EventRunFailed:
		f.endRun(at, Error, codeOf(p.Error))
	case wire.EventRunCancelled:
		f.endRun(at, Error, "cancelled")
	case wire.EventReplayDiverged:
		f.diverged(e)
	case wire.EventCapBreached:
		f.addEvent(p.NodeID, e.Type, at, map[string]any{
			"openwop.cap_kind":     p.Kind,
			"openwop.cap_limit":    p.Limit,
			"openwop.cap_observed": p.Observed,
		})
	default:
		if a := reliability(e.Type, p); a != nil {
			f.addEvent(p.NodeID, e.Type, at, a)
		}
	}
	if e.CausationID != "" {
		f.accept(e, p, at)
	}
	if n := f.nodes[p.NodeID]; n != nil && !describesCall(e) { // a call begins before its answer
		n.since = at
	}
	return f.ended[before:]
}

// describesCall reports whether an event is part of the answer of a node's open call, or says
// something about that call.
func describesCall(e wire.Event) bool {
	switch e.Type {
	case wire.EventOutputChunk, wire.EventAgentReasoningDelta, wire.EventAgentReasoned:
		return true
	case wire.EventLogAppended:
		var p struct {
			Fields struct{ Reason string }
		}
		_ = json.Unmarshal(e.Payload, &p) // an unreadable payload has no reason
		return slices.Contains([]string{wire.ReasonSchemaForm, wire.ReasonModelUsage, wire.ReasonTextChanged}, p.Fields.Reason)
	default:
		return false
	}
}

func codeOf(e *wire.NodeError) string {
	if e == nil {
		return ""
	}
	return e.Code
}

// startAttempt opens the span of an attempt, and of the node on its first attempt.
func (f *Fold) startAttempt(p event, at time.Time, seq int) {
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
	n.number, n.calls, n.said = p.Attempt, 0, answerText{}
	n.span.Attributes["openwop.node_attempt"] = int64(p.Attempt)
	n.attempt = &Span{
		Name: n.span.Name + suffixTry, Trace: f.trace, ID: AttemptSpan(f.rec.RunID, p.NodeID, p.Attempt), Parent: n.span.ID,
		Kind: KindInternal, Code: Unset, Start: at, Attributes: attributes(),
	}
	f.addTool(n.attempt, p.TypeID, p.NodeID)
}

// endAttempt ends the span of an attempt that is retried.
func (f *Fold) endAttempt(nodeID string, at time.Time, code string) {
	n := f.nodes[nodeID]
	switch {
	case n == nil || n.attempt == nil || n.attempt.Ended():
	case code == "": // a branch starts within it: nothing failed
		f.finish(n.attempt, at, OK, "")
	default:
		f.finish(n.attempt, at, Error, code)
	}
}

// endNode ends the spans of a node.
func (f *Fold) endNode(nodeID string, at time.Time, code Code, message string) {
	f.endOpen(func(of string) bool { return of == nodeID }, at, code, message)
	n := f.nodes[nodeID]
	if n == nil {
		return // skipped or cancelled before it started
	}
	for _, s := range []*Span{n.attempt, n.span} {
		if !s.Ended() {
			f.finish(s, at, code, message)
		}
	}
}

// endRun ends the run's span and all open spans.
func (f *Fold) endRun(at time.Time, code Code, message string) {
	for _, id := range slices.Sorted(maps.Keys(f.nodes)) {
		f.endNode(id, at, code, message)
	}
	f.endOpen(func(string) bool { return true }, at, code, message)
	f.finish(f.run, at, code, message)
}

func (f *Fold) finish(s *Span, at time.Time, code Code, message string) {
	s.end(at, code, message)
	if _, known := s.Attributes[genOperation]; known && code == Error && message != "" {
		s.Attributes[errorType] = message
	}
	f.ended = append(f.ended, s)
}

// addCall adds the span of a model call. The log records only when the answer arrived; the span
// starts at the node's previous event. It is complete with the next event; see endCall.
func (f *Fold) addCall(p event, at time.Time) {
	n := f.nodes[p.NodeID]
	if n == nil || n.attempt == nil {
		return
	}
	callCost := costOf(p)
	for _, s := range []*Span{n.attempt, n.span, f.run} {
		addCost(s.Attributes, callCost)
	}
	attributes := map[string]any{"openwop.run_id": f.rec.RunID, "openwop.node_id": p.NodeID}
	addCost(attributes, callCost)
	f.addGenAI(attributes, p)
	if n.form != "" {
		attributes[SchemaForm], n.form = n.form, ""
	}
	if n.reasoning != nil {
		attributes[genReasoning], n.reasoning = *n.reasoning, nil
	}
	s := &Span{
		Name:       NameCall + p.Provider,
		Trace:      f.trace,
		ID:         CallSpan(f.rec.RunID, p.NodeID, n.number, n.calls),
		Parent:     n.attempt.ID,
		Kind:       KindClient,
		Start:      n.since,
		Attributes: attributes,
	}
	n.calls++
	n.answered, n.said = &modelCall{s, at, n.said}, answerText{}
}

// cost adds the costs that a node reports apart from model calls. Attributes outside the closed
// list never enter a span (OpenWOP host contract §10.2).
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
	var sent struct {
		Reason, SchemaForm string
		ReasoningTokens    *int64
	}
	if json.Unmarshal(p.Fields, &sent) != nil {
		return
	}
	switch sent.Reason {
	case wire.ReasonSchemaForm:
		n.form = cut(sent.SchemaForm)
	case wire.ReasonModelUsage:
		n.reasoning = sent.ReasoningTokens
	}
}

// accept adds the span of an envelope's accept, at its first event.
func (f *Fold) accept(e wire.Event, p event, at time.Time) {
	kind, id, drift := p.ArtifactType, p.ArtifactID, p.Drift
	for _, s := range []stamp{p.Fields, p.Envelope} {
		if kind == "" {
			kind, id, drift = s.EnvelopeType, s.EnvelopeID, s.Drift
		}
	}
	if _, known := f.accepted[e.CausationID]; known || kind == "" {
		return
	}
	s := &Span{
		Name:   NameAccept,
		Trace:  f.trace,
		ID:     AcceptSpan(f.rec.RunID, e.CausationID),
		Parent: f.run.ID,
		Kind:   KindServer,
		Code:   OK,
		Start:  at,
		End:    at,
		Attributes: map[string]any{
			"openwop.run_id":          f.rec.RunID,
			"openwop.node_id":         e.NodeID,
			"openwop.envelope_kind":   kind,
			"openwop.envelope_id":     id,
			"envelope_correlation_id": e.CausationID,
			"envelope_outcome":        "accepted",
			"envelope_content_trust":  string(e.ContentTrust.Meet(wire.Trusted)),
		},
	}
	if drift != nil { // OpenWOP envelope contract §4.1
		s.Attributes["envelope_schema_version"], s.Attributes["envelope_schema_version_floor"] = drift.Sent, drift.Advertised
		s.Attributes["envelope_schema_version_drift"] = true
	}
	if n := f.nodes[e.NodeID]; n != nil && n.attempt != nil {
		s.Parent = n.attempt.ID
	}
	f.accepted[e.CausationID] = s
}

// Append returns the span of an append of events, from start to end.
func (f *Fold) Append(events []wire.Event, start, end time.Time) *Span {
	types := make([]string, 0, len(events))
	for _, e := range events {
		types = append(types, string(e.Type))
	}
	return &Span{
		Name:   NameAppend,
		Trace:  f.trace,
		ID:     AppendSpan(f.rec.RunID, events[0].Sequence),
		Parent: f.run.ID,
		Kind:   KindInternal,
		Code:   OK,
		Start:  start,
		End:    end,
		Attributes: map[string]any{
			"openwop.run_id":     f.rec.RunID,
			"openwop.event_type": strings.Join(types, ","),
			"openwop.event_seq":  int64(events[0].Sequence),
		},
	}
}

// addEvent adds an event to the span of the node's attempt, or else of the run.
func (f *Fold) addEvent(nodeID string, t wire.EventType, at time.Time, attributes map[string]any) {
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
