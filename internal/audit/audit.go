// Package audit keeps the audit log of each tenant: who did what, when, and to what.
//
// An entry holds the hash of the one before it, and from time to time a checkpoint
// signs the root of a Merkle tree over all entries so far. Whoever changes, removes or
// reorders an entry breaks the chain; whoever writes the whole chain anew contradicts
// the checkpoints (OpenWOP host contract §10.7).
//
//	Record → scrub → lane (one per tenant, shares appends) → Store
//	Run    → checkpoints                                   → Store
//	Verify, Entries                                        ← Store
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// Entry is what a caller says of an action. Place, time and hash are the log's.
type Entry struct {
	// Action names what was done, such as run.cancelled.
	Action string
	// Actor is who did it: the id of a key, or a part of the host. Never a credential.
	Actor string
	// Target is what it was done to, such as runs/run_1.
	Target string
	// Details are a few small facts; never content of a run, never a secret. What the
	// redactor knows of one is taken out, but that is the last guard and not the first.
	Details map[string]any
}

// Recorder takes entries into a tenant's log.
type Recorder interface {
	// Record returns when the entries are durable: an action is acknowledged after
	// that. Its error is a fault for the caller: fault.ServiceUnavailable. They are
	// recorded then as soon as that can be done, or may have been already.
	Record(ctx context.Context, tenant string, entries ...Entry) error
}

// Off records nothing: for a host without an audit log.
type Off struct{}

// Record does nothing.
func (Off) Record(context.Context, string, ...Entry) error { return nil }

// maxDetails bounds the details of an entry; larger ones are left out, and the entry
// says so: that something was done is never lost for how much is told of it.
const maxDetails = 16 << 10

var actionName = regexp.MustCompile(`^[a-z][a-z-]*(\.[a-z][a-z_-]*)+$`)

// part is what callers say, as the redactor sees it.
type part struct {
	Actor   string          `json:"actor"`
	Target  string          `json:"target"`
	Details json.RawMessage `json:"details"`
}

// draft is an entry that has no place yet.
type draft struct {
	part

	action string
	at     time.Time
}

// check refuses what no log takes: mistakes of the caller.
func check(tenant string, entries []Entry) error {
	if !subject.Token(tenant) {
		return fmt.Errorf("audit: tenant %q is none", tenant)
	}
	for _, e := range entries {
		if !actionName.MatchString(e.Action) {
			return fmt.Errorf("audit: action %q: want words with a dot between them, such as run.cancelled", e.Action)
		}
		if _, err := detailsOf(e); err != nil {
			return err
		}
	}
	return nil
}

// drafts scrubs entries.
func (l *Log) drafts(ctx context.Context, tenant string, entries []Entry, at time.Time) ([]draft, error) {
	parts := make([]part, len(entries))
	for i, e := range entries {
		details, err := detailsOf(e)
		if err != nil {
			return nil, err
		}
		parts[i] = part{Actor: e.Actor, Target: e.Target, Details: details}
	}
	if err := l.clean(ctx, tenant, &parts); err != nil {
		return nil, err
	}
	out := make([]draft, len(entries))
	for i, e := range entries {
		out[i] = draft{part: parts[i], action: e.Action, at: at}
	}
	return out, nil
}

func detailsOf(e Entry) (json.RawMessage, error) {
	if e.Details == nil {
		return json.RawMessage("{}"), nil
	}
	b, err := json.Marshal(e.Details)
	if err != nil {
		return nil, fmt.Errorf("audit: details of %s: %w", e.Action, err)
	}
	if len(b) > maxDetails {
		return fmt.Appendf(nil, `{"omittedBytes":%d}`, len(b)), nil
	}
	return b, nil
}

// clean takes secrets out. Without the redactor nothing is recorded, and so nothing
// that must be recorded is done.
func (l *Log) clean(ctx context.Context, tenant string, parts *[]part) error {
	doc, err := json.Marshal(*parts)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if doc, err = l.scrub(ctx, tenant, doc); err != nil {
		return unavailable(fmt.Errorf("audit: redactor: %w", err))
	}
	n := len(*parts)
	*parts = nil
	if err := json.Unmarshal(doc, parts); err != nil || len(*parts) != n {
		return unavailable(errors.Join(errors.New("audit: the redactor gave another document back"), err))
	}
	return nil
}

// retryAfter is the hint to callers whose action could not be recorded.
const retryAfter = time.Second

func unavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "the audit log cannot be reached, and it must hold what was done; try again").After(retryAfter).Wrap(err)
}
