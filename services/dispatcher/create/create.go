// Package create creates runs. It checks a request against its workflow and appends the start
// frame, which is the run.
package create

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Request is an authenticated request for a run. JSON members are objects, or empty.
type Request struct {
	Tenant, Principal string
	WorkflowID        string
	RunID             string
	// Digest identifies the request: two requests with one RunID must agree in it.
	Digest       string
	Inputs       json.RawMessage
	Configurable json.RawMessage
	Metadata     json.RawMessage
	Tags         []string
	ScopeID      string
	CallbackURL  string
	Transport    string
	Dedup        bool
	TestKey      bool
	Traceparent  string
}

// Created is the run of a request.
type Created struct {
	RunID, WorkflowID string
	// Replayed reports that an earlier request with the same digest created it.
	Replayed bool
}

// Redactor removes secrets from JSON documents.
type Redactor interface {
	// Redact returns the redacted documents. With registered it fails unless the run is registered.
	Redact(ctx context.Context, tenant, runID string, registered bool, docs [][]byte) (out [][]byte, changed bool, err error)
}

// Secrets registers the keys that tenants bring.
type Secrets interface {
	// Open registers the run and the secret that its ref names with the redactor.
	Open(ctx context.Context, tenant, runID, ref string) error
	// Close unregisters them.
	Close(ctx context.Context, tenant, runID string) error
}

// Definitions finds workflows.
type Definitions interface {
	Get(ctx context.Context, tenant, id string) (*definition.Entry, error)
	// ByDigest finds the definition that a run is pinned to.
	ByDigest(ctx context.Context, digest string) (*definition.Entry, error)
}

// Starter creates runs. It is safe for concurrent use.
type Starter struct{ deps Deps }

// New returns a starter.
func New(d Deps) *Starter { return &Starter{deps: d} }

// Start creates the run, or finds it if the same request created it before.
func (s *Starter) Start(ctx context.Context, req Request) (Created, error) {
	if req.Digest != "" { // a repeated request is answered from the log, whatever the current definition
		if c, err := s.findRepeated(ctx, req); !errors.Is(err, errNoRun) {
			return c, err
		}
	}
	def, err := s.deps.Definitions.Get(ctx, req.Tenant, req.WorkflowID)
	if err != nil {
		return Created{}, err
	}
	rec, err := s.newRecord(req, def)
	if err != nil {
		return Created{}, err
	}
	body, err := s.renderBody(ctx, rec)
	if err != nil {
		return Created{}, err
	}
	if req.Dedup {
		if err := s.claimScope(ctx, rec); err != nil {
			return Created{}, err
		}
	}
	return s.appendStart(ctx, req, rec, body, node.NewMaskPolicy(def.Def, node.CurrentOf(s.deps.Types)))
}

// renderBody returns the body of the start frame, without secrets.
func (s *Starter) renderBody(ctx context.Context, rec *wire.RunRecord) ([]byte, error) {
	scope, done, err := s.registerSecrets(ctx, rec)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.renderRecord(ctx, rec, scope)
}

// registerSecrets registers the run's own secrets with the redactor before anything of the run is
// recorded. It uses a scope of its own, which done releases, because the run may never exist. The
// executing dispatcher registers the secrets again.
func (s *Starter) registerSecrets(ctx context.Context, rec *wire.RunRecord) (scope string, done func(), err error) {
	if rec.CredentialRef == "" || s.deps.Secrets == nil {
		return rec.RunID, func() {}, nil
	}
	tenant, scope := rec.Owner.Tenant, rec.RunID+" "+rand.Text() // no run has a space in its id
	if err := s.deps.Secrets.Open(ctx, tenant, scope, rec.CredentialRef); err != nil {
		return "", nil, redactorUnavailable(err)
	}
	return scope, func() { _ = s.deps.Secrets.Close(context.WithoutCancel(ctx), tenant, scope) }, nil
}

func redactorUnavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "the redactor cannot be reached, and nothing is recorded without it; try again").
		After(time.Second).Wrap(err)
}

// newRecord checks the request against the workflow and returns the run's record.
func (s *Starter) newRecord(req Request, e *definition.Entry) (*wire.RunRecord, error) {
	if err := s.CheckExecutable(e.Def); err != nil {
		return nil, err
	}
	ref, err := s.checkConfigurable(req, e.Def)
	if err != nil {
		return nil, err
	}
	inputs := map[string]json.RawMessage{}
	if len(req.Inputs) > 0 && !strictjson.Each(req.Inputs, func(name, value []byte) { inputs[string(name)] = value }) {
		return nil, fault.InvalidBody("/inputs", "want a JSON object")
	}
	vars, problems := e.Def.Seed(inputs)
	if len(problems) > 0 {
		return nil, invalid("the inputs do not fit the workflow", problems)
	}
	return s.buildRecord(req, e, ref, inputs, vars), nil
}

// buildRecord returns the record of a checked request.
func (s *Starter) buildRecord(req Request, e *definition.Entry, ref string, inputs, vars map[string]json.RawMessage) *wire.RunRecord {
	for name := range inputs {
		delete(vars, name)
	}
	rec := &wire.RunRecord{
		RunID:           req.RunID,
		WorkflowID:      e.Def.ID,
		WorkflowDigest:  e.Digest,
		WorkflowVersion: e.Def.Version,
		Owner:           wire.Owner{Tenant: req.Tenant, Principal: req.Principal},
		ScopeID:         req.ScopeID,
		CallbackURL:     req.CallbackURL,
		Inputs:          inputs,
		Defaults:        vars,
		Channels:        e.Def.PinnedChannels(),
		Configurable:    req.Configurable,
		Tags:            req.Tags,
		Metadata:        req.Metadata,
		Transport:       req.Transport,
		RequestDigest:   req.Digest,
		TestKey:         req.TestKey,
		Traceparent:     req.Traceparent,
		CreatedAt:       wire.FormatTime(s.deps.Clock()),
		EngineVersion:   wire.EngineVersion,
		CredentialRef:   ref,
		Schedule:        e.Def.Schedule(inputs, vars),
	}
	s.applyLimits(rec, e.Def.Settings.TimeoutMillis)
	return rec
}

// applyLimits stores the run's limits in its record, so that later changes of the host's settings
// do not affect the run.
func (s *Starter) applyLimits(rec *wire.RunRecord, workflowMs int64) {
	var o struct {
		RunTimeoutMs   float64 `json:"runTimeoutMs"`
		RecursionLimit float64 `json:"recursionLimit"`
	}
	_ = strictjson.Read(rec.Configurable, &o) // checked before
	rec.WorkMs = s.deps.MaxDuration.Milliseconds()
	rec.DurationMs = 0
	if workflowMs > 0 {
		rec.DurationMs = min(workflowMs, maxDurationMs)
	}
	if ms := o.RunTimeoutMs; ms > 0 && (rec.DurationMs == 0 || ms < float64(rec.DurationMs)) {
		rec.DurationMs = max(int64(min(ms, maxDurationMs)), 1)
	}
	rec.MaxExecutions = s.deps.MaxExecutions
	if n := o.RecursionLimit; n > 0 && n < float64(rec.MaxExecutions) {
		rec.MaxExecutions = int(n)
	}
}

// maxDurationMs is a century, which is no effective limit.
const maxDurationMs = 100 * 366 * 24 * 3600 * 1000

// renderRecord returns the start frame's body. All values from the caller are redacted in a scope;
// ids and the host's own members cannot come from the caller.
func (s *Starter) renderRecord(ctx context.Context, rec *wire.RunRecord, scope string) ([]byte, error) {
	given, err := json.Marshal(struct {
		Inputs       map[string]json.RawMessage `json:"inputs,omitempty"`
		Configurable json.RawMessage            `json:"configurable,omitempty"`
		Tags         []string                   `json:"tags,omitempty"`
		Metadata     json.RawMessage            `json:"metadata,omitempty"`
		ScopeID      string                     `json:"scopeId,omitempty"`
		CallbackURL  string                     `json:"callbackUrl,omitempty"`
		Fork         *editedGiven               `json:"fork,omitempty"`
	}{rec.Inputs, rec.Configurable, rec.Tags, rec.Metadata, rec.ScopeID, rec.CallbackURL, givenEdits(rec)})
	if err != nil {
		return nil, fmt.Errorf("render run record: %w", err)
	}
	if !mayHoldSecret(given) {
		return marshalRecord(rec)
	}
	ref := wire.AppendString(nil, rec.CredentialRef)
	out, changed, err := s.deps.Redactor.Redact(ctx, rec.Owner.Tenant, scope, rec.Registration().Run, [][]byte{given, ref})
	switch {
	case runlog.IsPermanent(err):
		return nil, tooLarge(err)
	case err != nil:
		return nil, redactorUnavailable(err)
	case !changed:
		return marshalRecord(rec)
	case !bytes.Equal(out[1], ref):
		return nil, fault.InvalidBody(refPath, "want the name of a credential; this looks like one itself")
	}
	clean := *rec
	clean.Inputs, clean.Configurable, clean.Metadata = nil, nil, nil
	if rec.Fork != nil {
		fork := *rec.Fork
		fork.Edited = nil
		clean.Fork = &fork
	}
	if err := json.Unmarshal(out[0], &clean); err != nil {
		return nil, fmt.Errorf("read redacted run record: %w", err)
	}
	if err := s.repin(ctx, &clean); err != nil {
		return nil, err
	}
	if err := s.reschedule(ctx, &clean); err != nil {
		return nil, err
	}
	if clean.CallbackURL != rec.CallbackURL {
		return nil, fault.InvalidBody("/callbackUrl", "contains a secret, which this host does not record; use a URL without one")
	}
	return marshalRecord(&clean)
}

func marshalRecord(rec *wire.RunRecord) ([]byte, error) {
	body, err := json.Marshal(rec)
	if err != nil {
		return nil, fmt.Errorf("render run record: %w", err)
	}
	return body, nil
}

// reschedule computes the keys of limits from the redacted inputs, so that neither a secret nor a
// digest of it is recorded.
func (s *Starter) reschedule(ctx context.Context, clean *wire.RunRecord) error {
	if clean.Schedule == nil {
		return nil
	}
	e, err := definition.OfRun(ctx, s.deps.Definitions, clean)
	if err != nil {
		return err
	}
	clean.Schedule = e.Def.Schedule(clean.Inputs, clean.Defaults)
	return nil
}

// mayHoldSecret reports whether a value could hold a secret. The names of the fixed members do not count,
// although they are long enough.
func mayHoldSecret(given []byte) bool {
	some := false
	return !strictjson.Each(given, func(_, value []byte) { some = some || strictjson.MayHold(value, wire.MinSecretBytes) }) || some
}

func tooLarge(err error) error {
	return fault.New(fault.PayloadTooLarge, "the run's record exceeds a limit of the run log in size or nesting depth; send less").Wrap(err)
}

// writeTimeout limits the wait for the log before the caller gets an error. Repeating a request
// with an idempotency key is safe.
const writeTimeout = 5 * time.Second

// appendStart appends the start frame. If the run exists already, it answers like a repeated
// request, if the requests agree.
func (s *Starter) appendStart(ctx context.Context, req Request, rec *wire.RunRecord, body []byte, sensitive *node.MaskPolicy) (Created, error) {
	r := subject.Run{Tenant: rec.Owner.Tenant, WorkflowID: rec.WorkflowID, RunID: rec.RunID}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	trace := runspan.ContextOf(rec, runspan.Sampled(rec.Traceparent)).Run()
	writer := rand.Text()
	body, err := s.maskRecord(ctx, r, writer, body, sensitive)
	if err != nil {
		return Created{}, err
	}
	_, err = s.deps.Log.Append(ctx, frame.NewStart(r, body).By(writer).In(trace), 0)
	if errors.Is(err, runlog.ErrConflict) {
		c, err := s.findRepeated(ctx, req)
		if errors.Is(err, errNoRun) { // only the mark of its erasure is there
			err = errErased()
		}
		return c, err
	}
	if runlog.IsPermanent(err) {
		return Created{}, tooLarge(err)
	}
	if err != nil {
		return Created{}, fault.New(fault.ServiceUnavailable,
			"the run log does not answer, and whether the run was started is not known; repeat the request with its Idempotency-Key").
			After(time.Second).Wrap(err)
	}
	if s.deps.Created != nil {
		s.deps.Created(rec.WorkflowID)
	}
	return Created{RunID: rec.RunID, WorkflowID: rec.WorkflowID}, nil
}

// errKeyReused is the answer to another request with the same Idempotency-Key.
func errKeyReused() error {
	return fault.New(fault.IdempotencyKeyMismatch, "this Idempotency-Key was used with another request; use a new key for a new request")
}

// errErased is the answer to a repeated request whose run was erased. The run is not created again.
func errErased() error {
	return fault.New(fault.Conflict, "the run of this Idempotency-Key was erased; use a new key for a new run")
}

// errNoRun: no earlier request created the run.
var errNoRun = errors.New("no run of this id yet")

// findRepeated compares a request with the one that created the run, whatever its workflow: a
// repeated key with another workflow must find the first run.
func (s *Starter) findRepeated(ctx context.Context, req Request) (Created, error) {
	begin, err := s.deps.Log.First(ctx, subject.Run{Tenant: req.Tenant, RunID: req.RunID})
	if errors.Is(err, runlog.ErrNotFound) {
		return Created{}, errNoRun
	}
	if err != nil {
		return Created{}, fault.New(fault.ServiceUnavailable, "the run log cannot be read now; try again").After(time.Second).Wrap(err)
	}
	first, err := begin.Record()
	if err != nil {
		return Created{}, err
	}
	if first.RequestDigest != req.Digest {
		return Created{}, errKeyReused()
	}
	return Created{RunID: first.RunID, WorkflowID: first.WorkflowID, Replayed: true}, nil
}
