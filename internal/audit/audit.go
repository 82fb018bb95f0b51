// Package audit is the audit log of each tenant: who did what, when, and to what.
//
// Each entry has the hash of the previous one. At intervals a checkpoint signs the root of
// a Merkle tree over all entries. Changing, removing or reordering an entry breaks the
// chain. Rewriting the whole chain contradicts the checkpoints (OpenWOP host contract
// §10.7).
//
//	Record → redact → tenantWriter (one per tenant, batches appends) → Store
//	Run    → checkpoints, backlog                                    → Store
//	Verify, Page                                                     ← Store
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

// Entry describes an action. The log adds sequence, time and hash.
type Entry struct {
	// Action names what was done, such as run.cancelled.
	Action string
	// Actor is who did it: a key's id, or a part of the host. It is never a credential.
	Actor string
	// Target is the object of the action, such as runs/run_1.
	Target string
	// Details are a few small facts, never content of a run and never a secret. They are
	// redacted, but callers must not rely on that.
	Details map[string]any
}

// Recorder records entries in a tenant's log.
type Recorder interface {
	// Record returns when the entries are durable. Acknowledge an action only after that.
	// Errors: fault.ServiceUnavailable. Then the entries are recorded as soon as possible,
	// or may be recorded already.
	Record(ctx context.Context, tenant string, entries ...Entry) error
}

// Off records nothing. It is for a host without an audit log.
type Off struct{}

// Record does nothing.
func (Off) Record(context.Context, string, ...Entry) error { return nil }

// maxDetails limits the details of an entry, in bytes. Larger details are replaced with
// their size, so that the entry itself is never lost.
const maxDetails = 16 << 10

var actionName = regexp.MustCompile(`^[a-z][a-z-]*(\.[a-z][a-z_-]*)+$`)

// part has the members of an entry that are redacted.
type part struct {
	Actor   string          `json:"actor"`
	Target  string          `json:"target"`
	Details json.RawMessage `json:"details"`
}

// draft is an entry without a sequence.
type draft struct {
	part

	action string
	at     time.Time
}

// validateEntries reports errors of the caller.
func validateEntries(tenant string, entries []Entry) error {
	if !subject.Token(tenant) {
		return fmt.Errorf("audit: tenant %q: not a valid tenant id", tenant)
	}
	for _, e := range entries {
		if !actionName.MatchString(e.Action) {
			return fmt.Errorf("audit: action %q: must be words separated by dots, such as run.cancelled", e.Action)
		}
		if _, err := renderDetails(e); err != nil {
			return err
		}
	}
	return nil
}

// drafts redacts entries.
func (l *Log) drafts(ctx context.Context, tenant string, entries []Entry, at time.Time) ([]draft, error) {
	parts := make([]part, len(entries))
	for i, e := range entries {
		details, err := renderDetails(e)
		if err != nil {
			return nil, err
		}
		parts[i] = part{Actor: e.Actor, Target: e.Target, Details: details}
	}
	if err := l.redact(ctx, tenant, &parts); err != nil {
		return nil, err
	}
	out := make([]draft, len(entries))
	for i, e := range entries {
		out[i] = draft{part: parts[i], action: e.Action, at: at}
	}
	return out, nil
}

func renderDetails(e Entry) (json.RawMessage, error) {
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

// redact removes secrets. Without the redactor nothing is recorded, and so an action that
// must be recorded fails.
func (l *Log) redact(ctx context.Context, tenant string, parts *[]part) error {
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
		return unavailable(errors.Join(errors.New("audit: the redactor returned an invalid document"), err))
	}
	return nil
}

// retryAfter is the Retry-After for callers whose action could not be recorded.
const retryAfter = time.Second

func unavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "the audit log is unavailable, and the action must be recorded; try again").After(retryAfter).Wrap(err)
}
