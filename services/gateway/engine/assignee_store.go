package engine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/fault"
)

// assignment is an assignee as it is stored.
type assignment struct {
	Assignee string `json:"assignee"`
	By       string `json:"by"`
	At       string `json:"at"`
}

// question names an interrupt.
type question struct{ tenant, runID, interruptID string }

// key is the key of the question's assignee. External runs choose their interrupt ids.
func (q question) key() string {
	return "assignee." + q.tenant + "." + q.runID + ".=" + base64.RawURLEncoding.EncodeToString([]byte(q.interruptID))
}

// AssigneeStore keeps the assignees of questions. They are stored outside the run's log, so a fork does
// not copy them and a replay does not see them. It is safe for concurrent use.
type AssigneeStore struct{ Store kv.Store }

// get returns the assignment of a question and its revision; 0 and no assignment if it has none.
func (s *AssigneeStore) get(ctx context.Context, q question) (a assignment, revision uint64, err error) {
	e, err := s.Store.Get(ctx, q.key())
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return assignment{}, 0, nil
	case errors.Is(err, kv.ErrDamaged):
		return assignment{}, e.Revision, nil
	case err != nil:
		return assignment{}, 0, assigneesUnavailable(err)
	}
	if json.Unmarshal(e.Value, &a) != nil { // as if it had none: the next one replaces it
		return assignment{}, e.Revision, nil
	}
	return a, e.Revision, nil
}

// assign stores an assignment. Without replace, another assignee is fault.Conflict. It reports whether
// the question had no such assignee before.
func (s *AssigneeStore) assign(ctx context.Context, q question, a assignment, replace bool) (stored assignment, changed bool, err error) {
	doc, err := json.Marshal(a)
	if err != nil {
		return assignment{}, false, fmt.Errorf("render assignee: %w", err)
	}
	for {
		has, revision, err := s.get(ctx, q)
		if err != nil {
			return assignment{}, false, err
		}
		switch {
		case has.Assignee == a.Assignee:
			return has, false, nil
		case has.Assignee != "" && !replace:
			return assignment{}, false, fault.New(fault.Conflict, "the question is assigned to %s; set replace to take it over", has.Assignee).
				With("assignee", has.Assignee)
		}
		_, err = s.Store.Update(ctx, q.key(), doc, revision)
		switch {
		case err == nil:
			return a, true, nil
		case !errors.Is(err, kv.ErrConflict): // another caller was faster: look again
			return assignment{}, false, assigneesUnavailable(err)
		}
	}
}

// release removes an assignment, if there is one. record is called before that, so that none is removed
// without an entry.
func (s *AssigneeStore) release(ctx context.Context, q question, record func(assignee string) error) error {
	for {
		has, revision, err := s.get(ctx, q)
		if err != nil || revision == 0 {
			return err
		}
		if has.Assignee != "" {
			if err := record(has.Assignee); err != nil {
				return err
			}
		}
		err = s.Store.Delete(ctx, q.key(), revision)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, kv.ErrConflict): // another caller was faster: look again
			return assigneesUnavailable(err)
		}
	}
}

func assigneesUnavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "the store of assignees is unavailable; retry").After(time.Second).Wrap(err)
}
