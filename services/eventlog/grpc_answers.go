package eventlog

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	folded "waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/fold"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// Outcomes of answers.
const (
	outcomeAccepted = "accepted"
	outcomeRefused  = "refused"
)

// answerBytes ends a page early: it is the size of the events that a page may show, without those of
// its last run.
const answerBytes = 2 << 20

// ListAnswers lists the answers of the models that a page of runs called.
func (s *Service) ListAnswers(ctx context.Context, req *eventlogv1.ListAnswersRequest) (*eventlogv1.ListAnswersResponse, error) {
	if req.GetFilters() == nil {
		return nil, fault.InvalidBody("/filters", "required")
	}
	outcome := req.GetOutcome()
	if outcome != "" && outcome != outcomeAccepted && outcome != outcomeRefused {
		return nil, fault.OneOf("outcome", []string{outcomeAccepted, outcomeRefused})
	}
	q, err := s.listQuery(req.GetFilters())
	if err != nil {
		return nil, err
	}
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	rows, next, err := s.rows(ctx, q)
	if err != nil {
		return nil, err
	}
	out, size := &eventlogv1.ListAnswersResponse{NextCursor: next}, 0
	for i := range rows {
		if f := &rows[i].Facts; f.Known && f.TokensIn == nil { // it called no model
			continue
		}
		found, n, err := s.answersOf(ctx, &rows[i], outcome)
		if err != nil {
			if err = s.failure(rows[i].Key, err); s.leavesOut(rows[i].Key, err) {
				continue
			}
			return nil, err
		}
		out.Answers = append(out.Answers, found...)
		if size += n; size > answerBytes && i+1 < len(rows) {
			out.NextCursor = encodeCursor(q, store.PlaceOf(&rows[i], q.Sort))
			break
		}
	}
	return out, nil
}

// shown are the events whose content an answer shows.
var shown = map[wire.EventType]bool{
	wire.EventPromptComposed: true, wire.EventArtifactCreated: true, wire.EventClarificationRequested: true,
	wire.EventLogAppended: true, wire.EventNodeCompleted: true,
}

// answersOf returns the answers of a run, and the size of the events that were kept for them.
func (s *Service) answersOf(ctx context.Context, row *store.Run, outcome string) (out []*hostv1.ModelAnswer, size int, err error) {
	f, events := fold.New(row.RunID, row.CreatedAt), map[int]wire.Event{}
	err = eachEvent(ctx, s.store, row.Key, f.Next(), row.Head, func(e wire.Event) {
		f.Add(e)
		if shown[e.Type] {
			events[e.Sequence] = e
			size += len(e.Payload)
		}
	})
	if err != nil {
		return nil, 0, err
	}
	v := f.View()
	for _, x := range v.Answers {
		answer := answerOf(row, x, events)
		if answer == nil || outcome != "" && answer.GetOutcome() != outcome {
			continue
		}
		addUsage(answer, x, v.Cost.Calls)
		out = append(out, answer)
	}
	return out, size, nil
}

// eachEvent reads stored events from a sequence up to and including event head.
func eachEvent(ctx context.Context, from project.Frames, key store.Key, next, head int, do func(e wire.Event)) error {
	for next <= head {
		frames, err := from.Frames(ctx, key, next, defaultEvents)
		if err != nil {
			return err
		}
		before := next
		for _, fr := range frames {
			events, err := wire.ParseEvents(fr.Body)
			if err != nil {
				return fmt.Errorf("%w: %w", store.ErrDamaged, err)
			}
			for _, e := range events {
				if e.Sequence >= next && e.Sequence <= head {
					do(e)
					next = e.Sequence + 1
				}
			}
		}
		if next == before {
			return fmt.Errorf("event %d of run %s: %w", next, key.RunID, errMoved)
		}
	}
	return nil
}

// answerOf returns the answer of an execution that has ended with one; nil for others.
func answerOf(row *store.Run, x *folded.Execution, events map[int]wire.Event) *hostv1.ModelAnswer {
	if len(x.Calls) == 0 {
		return nil
	}
	out := &hostv1.ModelAnswer{
		RunId: row.RunID, WorkflowId: row.WorkflowID, NodeId: x.NodeID, TypeId: named(x.TypeID), RunCreatedAt: row.CreatedAt,
		Execution: int32(x.Number), Calls: int32(len(x.Calls)), FirstSequence: int32(x.From), LastSequence: int32(x.To), //nolint:gosec // G115: counts and sequences are far below 2^31
	}
	for _, c := range x.Calls {
		if c.Prompt != nil {
			if e, ok := events[*c.Prompt]; ok {
				out.Prompt = &openwopv1.JsonDocument{Json: e.Payload}
			}
		}
		for _, e := range c.Envelopes {
			if d := acceptedDocument(e, events); d != nil {
				out.Documents = append(out.Documents, d)
			}
		}
	}
	switch {
	case x.Result == folded.ResultCompleted && len(out.GetDocuments()) > 0:
		out.Outcome = outcomeAccepted
	case x.Result == folded.ResultFailed || x.Result == folded.ResultRetried:
		out.Outcome, out.Documents = outcomeRefused, nil
	default:
		return nil
	}
	out.Refusals = refusals(project.Refusals(x))
	if out.GetOutcome() == outcomeRefused && len(out.GetRefusals()) == 0 {
		return nil // it failed for another reason
	}
	return out
}

// acceptedDocument returns a document that its node accepted, with its payload; nil for others.
func acceptedDocument(x *folded.Envelope, events map[int]wire.Event) *hostv1.AcceptedDocument {
	if x.Outcome != folded.OutcomeAccepted || len(x.Events) == 0 {
		return nil
	}
	e, ok := events[x.Events[0].Sequence]
	if !ok {
		return nil
	}
	payload := fold.Payload(e)
	if x.Form == folded.FormValue {
		var p struct {
			Outputs json.RawMessage `json:"outputs"`
		}
		_ = json.Unmarshal(e.Payload, &p) // the fold has read it
		payload = p.Outputs
	}
	if len(payload) == 0 {
		return nil
	}
	return &hostv1.AcceptedDocument{Kind: named(x.Kind), EnvelopeId: named(x.EnvelopeID), Payload: &openwopv1.JsonDocument{Json: payload}}
}

// addUsage adds the model, tokens and cost of the calls of an execution.
func addUsage(to *hostv1.ModelAnswer, x *folded.Execution, calls []*folded.CostCall) {
	for _, c := range calls {
		if c.NodeID != x.NodeID || c.Sequence < x.From || c.Sequence > x.To {
			continue
		}
		to.Provider, to.Model = named(c.Provider), named(c.Model)
		for _, n := range []struct {
			to **int64
			by interface {
				IsInt64() bool
				Int64() int64
			}
			known bool
		}{{&to.InputTokens, c.InputTokens, c.InputTokens != nil}, {&to.OutputTokens, c.OutputTokens, c.OutputTokens != nil}} {
			if n.known && n.by.IsInt64() {
				sum := n.by.Int64()
				if *n.to != nil {
					sum += **n.to
				}
				*n.to = &sum
			}
		}
		if c.Cost != nil && !math.IsInf(*c.Cost, 0) {
			sum := to.GetCostUsd() + *c.Cost
			to.CostUsd = &sum
		}
	}
}

// named returns a text; nil if it is empty.
func named(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
