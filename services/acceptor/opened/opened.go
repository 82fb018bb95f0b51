// Package opened keeps the runs of executors that are not of this host: an
// agent runtime of somebody else's that only wants its envelopes taken in.
//
// Such a run begins with a frame of the kind open, which no dispatcher is handed.
// From then on it is a run as any other: its log is the truth, the event log
// serves it, and nothing follows its end.
package opened

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

// Redactor takes secrets out of texts; see accept.Redactor.
type Redactor interface {
	// Texts gives the texts scrubbed, in order; it refuses while those whose secrets are
	// needed are not registered.
	Texts(ctx context.Context, run subject.Run, needs wire.Registration, texts []string) ([]string, error)
	// Forget drops what was registered for the run, if anything was.
	Forget(ctx context.Context, run subject.Run) error
}

// Runs opens and closes runs. It is safe for concurrent use, also by several
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

// maxTries bounds how often an append is tried again after somebody else's.
const maxTries = 32

// retryAfter is what a caller waits before it tries a busy log again.
const retryAfter = time.Second

// Opening is how a run begins.
type Opening struct {
	// Boundary is the trust of all that comes of the run; empty: trusted.
	Boundary wire.Trust
	// Traceparent is the W3C Trace Context of whoever opens it; empty: none.
	Traceparent string
	// NoSecrets says that neither the run nor its tenant has secrets, NoTenantSecrets
	// that its tenant has none; see wire.RunRecord.Registration.
	NoSecrets, NoTenantSecrets bool
}

// Open begins a run, or finds it when it was opened before. Errors:
// fault.ValidationError for ids that hold a secret, Conflict when the id is that
// of another run, RunTerminal when the run has ended, ServiceUnavailable.
func (r *Runs) Open(ctx context.Context, run subject.Run, o Opening) (frame.Head, error) {
	clean, err := r.redactor.Texts(ctx, run, wire.Registration{}, []string{run.WorkflowID, run.RunID})
	if err != nil {
		return frame.Head{}, err
	}
	if clean[0] != run.WorkflowID || clean[1] != run.RunID {
		return frame.Head{}, fault.New(fault.ValidationError, "run: workflow_id and run_id must not hold a secret")
	}
	record, err := json.Marshal(&wire.RunRecord{
		RunID: run.RunID, WorkflowID: run.WorkflowID, Owner: wire.Owner{Tenant: run.Tenant}, TrustBoundary: o.Boundary, Traceparent: o.Traceparent,
		CreatedAt: wire.FormatTime(r.clock()), EngineVersion: wire.EngineVersion, Opened: true, NoSecrets: o.NoSecrets, NoTenantSecrets: o.NoTenantSecrets,
	})
	if err != nil {
		return frame.Head{}, fmt.Errorf("render run record: %w", err)
	}
	f := frame.NewOpen(run, record).By(rand.Text()) // somebody else may open it in the same millisecond
	pos, err := r.log.Append(ctx, f, 0)
	switch {
	case errors.Is(err, runlog.ErrConflict):
		return r.found(ctx, run, o)
	case err != nil:
		return frame.Head{}, logFault(err)
	}
	f.Pos = pos
	return r.started(ctx, run, o, f.Head())
}

// found is the run that has the id already.
func (r *Runs) found(ctx context.Context, run subject.Run, o Opening) (frame.Head, error) {
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
		return frame.Head{}, fault.New(fault.Conflict, "the run_id is that of a run which this host carries out; take another one")
	case rec.WorkflowID != run.WorkflowID || rec.TrustBoundary.Meet(wire.Trusted) != o.Boundary.Meet(wire.Trusted) || rec.NoSecrets != o.NoSecrets || rec.NoTenantSecrets != o.NoTenantSecrets:
		return frame.Head{}, fault.New(fault.Conflict,
			"the run is open with another workflow_id, trust_boundary, no_secrets or no_tenant_secrets; take another run_id")
	case last.Kind == subject.End:
		return frame.Head{}, ended()
	case len(frames) == 1: // whoever opened it was lost before it could go on
		return r.started(ctx, run, o, last.Head())
	}
	return last.Head(), nil
}

func ended() error { return fault.New(fault.RunTerminal, "the run has ended; nothing can follow") }

// started writes run.started, the first event of every run.
func (r *Runs) started(ctx context.Context, run subject.Run, o Opening, head frame.Head) (frame.Head, error) {
	payload, err := json.Marshal(map[string]any{
		"workflowId": run.WorkflowID, "engineVersion": strconv.Itoa(wire.EngineVersion), "owner": wire.Owner{Tenant: run.Tenant},
	})
	if err != nil {
		return frame.Head{}, fmt.Errorf("render run.started: %w", err)
	}
	d := wire.Draft{Type: wire.EventRunStarted, Payload: payload}
	if o.Boundary == wire.Untrusted {
		d.Trust = o.Boundary
	}
	next, err := r.append(ctx, run, subject.Step, head, d)
	if errors.Is(err, runlog.ErrConflict) {
		return r.found(ctx, run, o) // somebody else opens the same run
	}
	if err != nil {
		return frame.Head{}, logFault(err)
	}
	return next, nil
}

func (r *Runs) append(ctx context.Context, run subject.Run, kind subject.Kind, head frame.Head, d wire.Draft) (frame.Head, error) {
	f := frame.New(run, kind, head, []wire.Event{d.Place(run.RunID, head.Next, r.clock())}).By(rand.Text())
	pos, err := r.log.Append(ctx, f, head.Pos)
	if err != nil {
		return frame.Head{}, err
	}
	f.Pos = pos
	return f.Head(), nil
}

// Ending is how a run ends.
type Ending struct {
	// Status is completed, failed or cancelled.
	Status wire.Status
	// Code and Message are the error of a failed run, Message the reason of a
	// cancelled one.
	Code, Message string
	// Told is what the redactor has to have been told; see wire.Registration.
	Told []string
}

// Close ends a run. Ending it again in the same way changes nothing. Errors:
// fault.ValidationError, RunNotFound, Conflict when the run is not one that was
// opened or has ended otherwise, ServiceUnavailable.
func (r *Runs) Close(ctx context.Context, run subject.Run, e Ending) (frame.Head, error) {
	event, err := e.event()
	if err != nil {
		return frame.Head{}, err
	}
	head, err := r.end(ctx, run, event, e)
	if err != nil {
		return frame.Head{}, err
	}
	// Its secrets die with the run (OpenWOP envelope contract §11, registry).
	if err := r.redactor.Forget(ctx, run); err != nil {
		return frame.Head{}, fault.New(fault.ServiceUnavailable, "the run has ended, but the redactor may still remember its secrets; close it again").
			After(retryAfter).Wrap(err)
	}
	return head, nil
}

// end writes the event that ends the run, or finds it.
func (r *Runs) end(ctx context.Context, run subject.Run, event wire.EventType, e Ending) (frame.Head, error) {
	for range maxTries {
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
			return frame.Head{}, fault.New(fault.Conflict, "this host carries the run out itself; cancel it instead")
		case last.Kind == subject.End && last.Types[0] == event:
			return last.Head(), nil
		case last.Kind == subject.End:
			return frame.Head{}, fault.New(fault.Conflict, "the run has ended with %s", last.Types[0])
		case last.Head().Next == 0: // whoever opened it was lost before run.started
			o := Opening{Boundary: rec.TrustBoundary, NoSecrets: rec.NoSecrets, NoTenantSecrets: rec.NoTenantSecrets}
			// Whoever was first may have ended it as well; then the log says how.
			if _, err := r.started(ctx, frames[0].Run, o, last.Head()); err != nil && fault.CodeOf(err) != fault.RunTerminal {
				return frame.Head{}, err
			}
			continue
		}
		clean, err := r.clean(ctx, run, rec.Registration(), e)
		if err != nil {
			return frame.Head{}, err
		}
		d := wire.Draft{Type: event}
		if d.Payload, err = payload(event, clean); err != nil {
			return frame.Head{}, err
		}
		if rec.TrustBoundary == wire.Untrusted {
			d.Trust = wire.Untrusted
		}
		head, err := r.append(ctx, frames[0].Run, subject.End, last.Head(), d)
		if !errors.Is(err, runlog.ErrConflict) {
			return head, logFault(err)
		}
	}
	return frame.Head{}, fault.New(fault.ServiceUnavailable, "the run's log is busy; try again").After(retryAfter)
}

// clean takes secrets out of what is said about the end. Where nothing is said there
// are none: such a run ends without a redactor that knows them.
func (r *Runs) clean(ctx context.Context, run subject.Run, needs wire.Registration, e Ending) (Ending, error) {
	if e.Code == "" && e.Message == "" {
		return e, nil
	}
	needs.Told = e.Told
	texts, err := r.redactor.Texts(ctx, run, needs, []string{e.Code, e.Message})
	if err != nil {
		return e, err
	}
	e.Code, e.Message = texts[0], texts[1]
	return e, nil
}

// event is the type of the event that ends the run.
func (e Ending) event() (wire.EventType, error) {
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
		return "", fault.New(fault.ValidationError, "status: needs completed, failed or cancelled")
	}
}

// payload is that of the event that ends the run; the texts have passed the redactor.
func payload(event wire.EventType, e Ending) (json.RawMessage, error) {
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

// logFault translates what the log says; nil stays nil.
func logFault(err error) error {
	if large, ok := errors.AsType[*runlog.TooLargeError](err); ok {
		return fault.New(fault.PayloadTooLarge, "the texts of the request take %d bytes in the run log, and its server takes %d at a time; send less",
			large.Size, large.Limit).With("sizeBytes", large.Size).With("limitBytes", large.Limit).Wrap(err)
	}
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return fault.New(fault.RunNotFound, "no run of this id is open").Wrap(err)
	case errors.Is(err, runlog.ErrUnavailable):
		return fault.New(fault.ServiceUnavailable, "the run log cannot be reached; try again").After(retryAfter).Wrap(err)
	}
	return err
}
