// Package external opens and closes runs of external executors: agent runtimes outside
// this host that only submit envelopes.
//
// Such a run starts with a frame of kind open, which is not queued for dispatchers.
// Otherwise it is a normal run: its log is the truth, the event log serves it, and no
// frame follows its end.
package external

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Redactor removes secrets from texts; see accept.Redactor.
type Redactor interface {
	// Texts returns the texts redacted, in order. It fails while required secrets are
	// not registered.
	Texts(ctx context.Context, run subject.Run, needs wire.Registration, texts []string) ([]string, error)
	// Forget removes the run's registered secrets, if any.
	Forget(ctx context.Context, run subject.Run) error
}

// Runs opens and closes runs. It is safe for concurrent use, including by several
// processes.
type Runs struct {
	log      runlog.Log
	redactor Redactor
	clock    func() time.Time
}

// New makes Runs over a log.
func New(log runlog.Log, r Redactor, clock func() time.Time) *Runs {
	return &Runs{log: log, redactor: r, clock: clock}
}

// maxAppendAttempts limits the attempts to append while other writers append.
const maxAppendAttempts = 32

// retryAfter is the Retry-After of errors that a later try can fix.
const retryAfter = time.Second

// OpenOptions are the properties of a new run.
type OpenOptions struct {
	// Boundary is the trust of the run's content; empty means trusted.
	Boundary wire.Trust
	// Traceparent is the caller's W3C trace context; empty means none.
	Traceparent string
	// NoSecrets: neither the run nor its tenant has secrets. NoTenantSecrets: the tenant
	// has none. See wire.RunRecord.Registration.
	NoSecrets, NoTenantSecrets bool
}

// Open starts a run, or returns the head of the run if it is open already. Errors:
// fault.ValidationError for ids that contain a secret, Conflict when another run has
// the id, RunTerminal when the run has ended, ServiceUnavailable.
func (r *Runs) Open(ctx context.Context, run subject.Run, o OpenOptions) (frame.Head, error) {
	clean, err := r.redactor.Texts(ctx, run, wire.Registration{}, []string{run.WorkflowID, run.RunID})
	if err != nil {
		return frame.Head{}, err
	}
	if clean[0] != run.WorkflowID || clean[1] != run.RunID {
		return frame.Head{}, fault.New(fault.ValidationError, "run: workflow_id and run_id must not contain a secret")
	}
	record, err := json.Marshal(&wire.RunRecord{
		RunID:           run.RunID,
		WorkflowID:      run.WorkflowID,
		Owner:           wire.Owner{Tenant: run.Tenant},
		TrustBoundary:   o.Boundary,
		Traceparent:     o.Traceparent,
		CreatedAt:       wire.FormatTime(r.clock()),
		EngineVersion:   wire.EngineVersion,
		Opened:          true,
		NoSecrets:       o.NoSecrets,
		NoTenantSecrets: o.NoTenantSecrets,
	})
	if err != nil {
		return frame.Head{}, fmt.Errorf("render run record: %w", err)
	}
	f := frame.NewOpen(run, record).By(rand.Text()) // unique, even if two callers open the run in one millisecond
	pos, err := r.log.Append(ctx, f, 0)
	switch {
	case errors.Is(err, runlog.ErrConflict):
		return r.existingHead(ctx, run, o)
	case err != nil:
		return frame.Head{}, logFault(err)
	}
	f.Pos = pos
	return r.writeStarted(ctx, run, o, f.Head())
}

// existingHead returns the head of the run that has the id already, if it was opened
// with the same options.
func (r *Runs) existingHead(ctx context.Context, run subject.Run, o OpenOptions) (frame.Head, error) {
	frames, err := r.log.Run(ctx, subject.Run{Tenant: run.Tenant, RunID: run.RunID})
	if err != nil {
		return frame.Head{}, logFault(err)
	}
	rec, err := frames[0].Record()
	if err != nil {
		return frame.Head{}, err
	}
	last := frames[len(frames)-1]
	switch {
	case !rec.Opened:
		return frame.Head{}, fault.New(fault.Conflict, "run_id: this host executes a run with this id; use another one")
	case rec.WorkflowID != run.WorkflowID || rec.TrustBoundary.Meet(wire.Trusted) != o.Boundary.Meet(wire.Trusted) ||
		rec.NoSecrets != o.NoSecrets || rec.NoTenantSecrets != o.NoTenantSecrets:
		return frame.Head{}, fault.New(fault.Conflict,
			"the run is open with another workflow_id, trust_boundary, no_secrets or no_tenant_secrets; use another run_id")
	case last.Kind == subject.End:
		return frame.Head{}, errEnded()
	case len(frames) == 1: // an earlier Open did not complete
		return r.writeStarted(ctx, run, o, last.Head())
	}
	return last.Head(), nil
}

func errEnded() error { return fault.New(fault.RunTerminal, "the run has ended; use another run_id") }

// writeStarted appends run.started, the first event of every run.
func (r *Runs) writeStarted(ctx context.Context, run subject.Run, o OpenOptions, head frame.Head) (frame.Head, error) {
	payload, err := json.Marshal(map[string]any{
		"workflowId":    run.WorkflowID,
		"engineVersion": strconv.Itoa(wire.EngineVersion),
		"owner":         wire.Owner{Tenant: run.Tenant},
	})
	if err != nil {
		return frame.Head{}, fmt.Errorf("render run.started: %w", err)
	}
	d := wire.Draft{Type: wire.EventRunStarted, Payload: payload}
	if o.Boundary == wire.Untrusted {
		d.Trust = o.Boundary
	}
	next, err := r.appendEvent(ctx, run, subject.Step, head, d)
	if errors.Is(err, runlog.ErrConflict) {
		return r.existingHead(ctx, run, o) // another caller opens the same run
	}
	if err != nil {
		return frame.Head{}, logFault(err)
	}
	return next, nil
}

func (r *Runs) appendEvent(ctx context.Context, run subject.Run, kind subject.Kind, head frame.Head, d wire.Draft) (frame.Head, error) {
	f := frame.New(run, kind, head, []wire.Event{d.Place(run.RunID, head.Next, r.clock())}).By(rand.Text())
	pos, err := r.log.Append(ctx, f, head.Pos)
	if err != nil {
		return frame.Head{}, err
	}
	f.Pos = pos
	return f.Head(), nil
}

// CloseOptions are the outcome of a run.
type CloseOptions struct {
	// Status is completed, failed or cancelled.
	Status wire.Status
	// Code and Message are the error of a failed run. Message is also the reason of a
	// cancelled run.
	Code, Message string
	// Registrations must be known to the redactor before the run can close; see
	// wire.Registration.
	Registrations []string
}

// Close ends a run. Closing it again with the same status changes nothing. Errors:
// fault.ValidationError, RunNotFound, Conflict when the run is not external or has
// another status, ServiceUnavailable.
func (r *Runs) Close(ctx context.Context, run subject.Run, e CloseOptions) (frame.Head, error) {
	event, err := e.eventType()
	if err != nil {
		return frame.Head{}, err
	}
	head, err := r.writeEnd(ctx, run, event, e)
	if err != nil {
		return frame.Head{}, err
	}
	// The redactor forgets a run's secrets at its end (OpenWOP envelope contract §11,
	// registry).
	if err := r.redactor.Forget(ctx, run); err != nil {
		return frame.Head{}, fault.New(fault.ServiceUnavailable,
			"the run has ended, but the redactor may still have its secrets; call CloseRun again").After(retryAfter).Wrap(err)
	}
	return head, nil
}

// writeEnd appends the event that ends the run, unless the run has ended with it.
func (r *Runs) writeEnd(ctx context.Context, run subject.Run, event wire.EventType, e CloseOptions) (frame.Head, error) {
	for range maxAppendAttempts {
		frames, err := r.log.Run(ctx, run)
		if err != nil {
			return frame.Head{}, logFault(err)
		}
		rec, err := frames[0].Record()
		if err != nil {
			return frame.Head{}, err
		}
		last := frames[len(frames)-1]
		switch {
		case !rec.Opened:
			return frame.Head{}, fault.New(fault.Conflict, "this host executes the run; cancel it instead")
		case last.Kind == subject.End && last.Types[0] == event:
			return last.Head(), nil
		case last.Kind == subject.End:
			return frame.Head{}, fault.New(fault.Conflict, "the run has ended with %s", last.Types[0])
		case last.Head().Next == 0: // OpenRun did not complete
			o := OpenOptions{Boundary: rec.TrustBoundary, NoSecrets: rec.NoSecrets, NoTenantSecrets: rec.NoTenantSecrets}
			// Another caller may have started and ended the run. Then the next attempt
			// reads its end.
			if _, err := r.writeStarted(ctx, frames[0].Run, o, last.Head()); err != nil && fault.CodeOf(err) != fault.RunTerminal {
				return frame.Head{}, err
			}
			continue
		}
		clean, err := r.redactTexts(ctx, run, rec.Registration(), e)
		if err != nil {
			return frame.Head{}, err
		}
		d := wire.Draft{Type: event}
		if d.Payload, err = endPayload(event, clean); err != nil {
			return frame.Head{}, err
		}
		if rec.TrustBoundary == wire.Untrusted {
			d.Trust = wire.Untrusted
		}
		head, err := r.appendEvent(ctx, frames[0].Run, subject.End, last.Head(), d)
		if !errors.Is(err, runlog.ErrConflict) {
			return head, logFault(err)
		}
	}
	return frame.Head{}, fault.New(fault.ServiceUnavailable, "too many concurrent appends to the run; try again").After(retryAfter)
}

// redactTexts removes secrets from code and message. If both are empty, the run can
// close without registered secrets.
func (r *Runs) redactTexts(ctx context.Context, run subject.Run, needs wire.Registration, e CloseOptions) (CloseOptions, error) {
	if e.Code == "" && e.Message == "" {
		return e, nil
	}
	needs.Told = e.Registrations
	texts, err := r.redactor.Texts(ctx, run, needs, []string{e.Code, e.Message})
	if err != nil {
		return e, err
	}
	e.Code, e.Message = texts[0], texts[1]
	return e, nil
}

// eventType returns the type of the event that ends the run.
func (e CloseOptions) eventType() (wire.EventType, error) {
	switch e.Status {
	case wire.StatusCompleted:
		return wire.EventRunCompleted, nil
	case wire.StatusFailed:
		if e.Code == "" || e.Message == "" {
			return "", fault.New(fault.ValidationError, "error_code and message: a failed run needs both")
		}
		return wire.EventRunFailed, nil
	case wire.StatusCancelled:
		return wire.EventRunCancelled, nil
	default:
		return "", fault.New(fault.ValidationError, "status: must be completed, failed or cancelled")
	}
}

// endPayload renders the payload of the event that ends the run, from redacted texts.
func endPayload(event wire.EventType, e CloseOptions) (json.RawMessage, error) {
	p := map[string]any{}
	switch {
	case event == wire.EventRunFailed:
		p["error"] = map[string]string{"code": e.Code, "message": e.Message}
	case event == wire.EventRunCancelled && e.Message != "":
		p["reason"] = e.Message
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("render the end of a run: %w", err)
	}
	return b, nil
}

// logFault turns errors of the run log into faults; nil stays nil.
func logFault(err error) error {
	if large, ok := errors.AsType[*runlog.TooLargeError](err); ok {
		return fault.New(fault.PayloadTooLarge, "the request would append %d bytes to the run log; the limit is %d; send shorter texts",
			large.Size, large.Limit).With("sizeBytes", large.Size).With("limitBytes", large.Limit).Wrap(err)
	}
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return fault.New(fault.RunNotFound, "no run with this id is open").Wrap(err)
	case errors.Is(err, runlog.ErrUnavailable):
		return fault.New(fault.ServiceUnavailable, "the run log is unreachable; try again").After(retryAfter).Wrap(err)
	}
	return err
}
