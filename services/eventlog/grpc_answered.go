package eventlog

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// checkDay validates a day of answers; empty means the open questions.
func checkDay(day string) error {
	if day == "" {
		return nil
	}
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return fault.InvalidQuery("answeredOn", "want a day in UTC, such as 2026-11-27")
	}
	return nil
}

// answer is the recorded answer of a question.
type answer struct {
	InterruptID string          `json:"interruptId"`
	ResumeValue json.RawMessage `json:"resumeValue"`
	ResolvedAt  string          `json:"resolvedAt"`
	ResolvedBy  string          `json:"resolvedBy"`
	Outcome     string          `json:"outcome"`
	Reason      string          `json:"reason"`
}

// action returns the action of an approval, or how the question ended.
func (a *answer) action() string {
	var v struct {
		Action string `json:"action"`
	}
	_ = json.Unmarshal(a.ResumeValue, &v) // an answer that is no object has no action
	return cmp.Or(v.Action, a.Reason, a.Outcome)
}

// answeredIn adds the questions of one run that were answered on a day, the latest first. It returns the
// size of the events that it read.
func (s *Service) answeredIn(ctx context.Context, r store.Run, day, kind string, to *eventlogv1.ListInterruptsResponse) (int, error) {
	asked := map[string]*runstate.OpenInterrupt{}
	var status wire.Status
	own := 0 // a fork copies the answers of its source
	err := s.views.with(ctx, r, func(w *view) {
		status = w.run.State.Status
		if f := w.run.State.Record.Fork; f != nil {
			own = f.Ends()
		}
		for _, i := range w.run.State.Interrupts {
			asked[i.InterruptID] = w.run.State.Shown(i)
		}
	})
	if err != nil {
		return 0, s.failure(r.Key, err)
	}
	answers, size, err := s.answersOn(ctx, r, own, day)
	if err != nil {
		return 0, err
	}
	slices.Reverse(answers)
	for _, a := range answers {
		shown := asked[a.InterruptID]
		if shown == nil || kind != "" && kind != string(shown.Kind) {
			continue
		}
		doc, err := json.Marshal(shown)
		if err != nil {
			return 0, s.failure(r.Key, err)
		}
		to.Interrupts = append(to.Interrupts, &eventlogv1.OpenInterrupt{
			RunId: r.RunID, WorkflowId: r.WorkflowID, Status: string(status), Interrupt: doc,
			Answer: &eventlogv1.InterruptAnswer{At: a.ResolvedAt, By: a.ResolvedBy, Outcome: a.action(), Value: a.ResumeValue},
		})
	}
	return size, nil
}

// answersOn reads the answers that a run got on a day, in order, from an event on. Only frames with an
// answer are parsed; size is that of all.
func (s *Service) answersOn(ctx context.Context, r store.Run, from int, day string) (out []answer, size int, err error) {
	for next := from; next <= r.Head; {
		frames, err := s.store.Frames(ctx, r.Key, next, maxEvents)
		if err != nil {
			return nil, 0, s.failure(r.Key, err)
		}
		if len(frames) == 0 {
			return out, size, nil
		}
		for _, f := range frames {
			next = max(next, f.Last+1)
			size += len(f.Body)
			if !slices.Contains(f.Types, wire.EventInterruptResolved) {
				continue
			}
			events, err := wire.ParseEvents(f.Body)
			if err != nil {
				return nil, 0, s.failure(r.Key, store.ErrDamaged)
			}
			for _, e := range events {
				var a answer
				if e.Type != wire.EventInterruptResolved || e.Sequence < from || json.Unmarshal(e.Payload, &a) != nil {
					continue
				}
				if a.ResolvedAt = cmp.Or(a.ResolvedAt, e.Timestamp); dayOf(e.Timestamp) == day {
					out = append(out, a)
				}
			}
		}
	}
	return out, size, nil
}

// dayOf returns the day in UTC of a time in wire.TimeLayout, as marks have it.
func dayOf(at string) string { return at[:min(len(at), len(time.DateOnly))] }

// The most runs whose questions are counted, and the time in which a question is due soon.
const (
	maxAsking = 1000
	dueSoon   = time.Hour
)

// CountInterrupts counts the open questions of a tenant's runs, and those that a responder may answer.
func (s *Service) CountInterrupts(ctx context.Context, req *eventlogv1.CountInterruptsRequest) (*eventlogv1.CountInterruptsResponse, error) {
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	who := interrupt.Responder{Principal: req.GetPrincipal(), User: req.GetUser(), Groups: req.GetGroups(), Roles: req.GetRoles()}
	soon := s.clock().Add(dueSoon)
	resp := &eventlogv1.CountInterruptsResponse{}
	q := store.Query{Tenant: req.GetTenant(), Asking: true, Limit: maxRuns}
	for counted := 0; counted < maxAsking; {
		rows, next, err := s.rows(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if err := s.countIn(ctx, r, who, soon, resp); err != nil && !s.leavesOut(r.Key, err) {
				return nil, err
			}
		}
		if next == "" {
			resp.Complete = true
			break
		}
		counted += len(rows)
		q.After = store.PlaceOf(&rows[len(rows)-1], store.SortCreated)
	}
	return resp, nil
}

// countIn counts the open questions of one run.
func (s *Service) countIn(ctx context.Context, r store.Run, who interrupt.Responder, soon time.Time, to *eventlogv1.CountInterruptsResponse) error {
	err := s.views.with(ctx, r, func(w *view) {
		for _, i := range w.run.State.Questions() {
			to.Open++
			if !i.Admits(who) {
				continue
			}
			to.Answerable++
			if due, ok := i.Deadline(); ok && due.Before(soon) {
				to.DueSoon++
			}
		}
	})
	if err != nil {
		return s.failure(r.Key, err)
	}
	return nil
}
