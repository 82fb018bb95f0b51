package create

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Fork is an authenticated request for a fork of a run.
type Fork struct {
	Tenant      string
	SourceRunID string
	RunID       string
	// Digest identifies the request: two requests with one RunID must agree in it.
	Digest  string
	Mode    wire.ForkMode
	FromSeq int
	Overlay Overlay
	// Edit is nil unless a node of a branch is edited. It determines FromSeq.
	Edit *Edit
	// TestKey reports that the caller's key may name mock providers.
	TestKey     bool
	Traceparent string
}

// Overlay has the members of a branch that replace its source's; a nil member keeps the source's.
type Overlay struct {
	// Configurable is an object that is merged over the source's.
	Configurable json.RawMessage
	Tags         *[]string
	Metadata     json.RawMessage
}

// Forked is the fork of a request.
type Forked struct {
	Created
	Fork wire.Fork
}

// Fork creates a fork, or finds it if the same request created it before. The source's events are
// copied later, by the dispatcher that executes the fork.
func (s *Starter) Fork(ctx context.Context, req Fork) (Forked, error) {
	asked := Request{Tenant: req.Tenant, RunID: req.RunID, Digest: req.Digest}
	if req.Digest != "" {
		if c, err := s.findRepeated(ctx, asked); !errors.Is(err, errNoRun) {
			return s.forkResult(ctx, c, req, err)
		}
	}
	var start *NodeStart
	if req.Edit != nil {
		var err error
		if start, err = s.startEdit(ctx, &req); err != nil {
			return Forked{}, err
		}
	}
	source, err := s.findSource(ctx, req)
	if err != nil {
		return Forked{}, err
	}
	rec, body, err := s.forkRecord(ctx, req, source, start)
	if err != nil {
		return Forked{}, err
	}
	c, err := s.appendStart(ctx, asked, rec, body, nil) // values that the source masks stay masked
	return s.forkResult(ctx, c, req, err)
}

// forkResult returns the answer; for a repeated request, the first one's.
func (s *Starter) forkResult(ctx context.Context, c Created, req Fork, err error) (Forked, error) {
	out := Forked{Created: c, Fork: wire.Fork{SourceRunID: req.SourceRunID, Mode: req.Mode, FromSeq: req.FromSeq}}
	if err != nil || !c.Replayed {
		return out, err
	}
	first, err := s.deps.Log.First(ctx, subject.Run{Tenant: req.Tenant, RunID: req.RunID})
	if err != nil {
		return Forked{}, logUnavailable(err)
	}
	rec, err := first.Record()
	if err != nil {
		return Forked{}, err
	}
	if rec.Fork == nil {
		return Forked{}, errKeyReused()
	}
	out.Fork = *rec.Fork
	return out, nil
}

func logUnavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "the run log cannot be read now; try again").Wrap(err)
}

// source is a run to fork.
type source struct {
	*wire.RunRecord
	head  int // the number of its events
	ended bool
	// cancelledAt is the sequence at which the cancellation begins that ended it; head if none did.
	cancelledAt int
}

// findSource finds the run to fork, in its current state.
func (s *Starter) findSource(ctx context.Context, req Fork) (*source, error) {
	r := subject.Run{Tenant: req.Tenant, RunID: req.SourceRunID}
	last, err := s.deps.Log.Last(ctx, r)
	if errors.Is(err, runlog.ErrNotFound) {
		return nil, fault.NoRun()
	}
	if err != nil {
		return nil, readError(err)
	}
	first, err := s.deps.Log.First(ctx, last.Run)
	if errors.Is(err, runlog.ErrNotFound) {
		return nil, fault.New(fault.RunExpired, "the beginning of run %s is no longer kept; event %d is", req.SourceRunID, last.First).
			With("sourceRunId", req.SourceRunID).With("fromSeq", req.FromSeq).With("boundary", last.First)
	}
	if err != nil {
		return nil, readError(err)
	}
	rec, err := first.Record()
	if err != nil {
		return nil, err
	}
	if err := checkEngine(rec, last); err != nil {
		return nil, err
	}
	if rec.Masking != "" && req.Mode == wire.ForkBranch {
		return nil, fault.New(fault.Conflict, "the run holds sensitive values, which its log has masked: it can be replayed, and not branched")
	}
	if rec.Opened {
		return nil, fault.New(fault.Conflict, "the run is carried out outside this host, which cannot execute it again")
	}
	out := &source{RunRecord: rec, head: last.Last + 1, ended: last.Kind == subject.End}
	out.cancelledAt = out.head - cancellation(last.Types)
	return out, checkFromSeq(req, out)
}

// cancellation counts the events of the cancellation that ends a frame: run.cancelled, and the nodes
// that it ended. They are appended in one frame.
func cancellation(types []wire.EventType) int {
	n := len(types)
	if n == 0 || types[n-1] != wire.EventRunCancelled {
		return 0
	}
	begin := n - 1
	for begin > 0 && types[begin-1] == wire.EventNodeCancelled {
		begin--
	}
	return n - begin
}

// followed returns the number of the source's events that a fork follows. A replay does not repeat a
// cancellation, but executes again what it ended, unless its beginning is copied history (OpenWOP
// host contract §7.1).
func (s *source) followed(mode wire.ForkMode, fromSeq int) int {
	if mode == wire.ForkReplay && fromSeq <= s.cancelledAt {
		return s.cancelledAt
	}
	return s.head
}

// checkEngine rejects a source that a later engine started or continued. The last event has the
// latest engine, because no earlier engine continues after a later one.
func checkEngine(rec *wire.RunRecord, last *frame.Frame) error {
	version := rec.EngineVersion
	if events, err := last.Events(); err == nil && len(events) > 0 {
		version = max(version, events[len(events)-1].Engine())
	}
	return runstate.Refuse(rec.RunID, version)
}

// readError distinguishes an unreachable log from a damaged one.
func readError(err error) error {
	if errors.Is(err, frame.ErrDamaged) {
		return fmt.Errorf("read the run to fork: %w", err)
	}
	return logUnavailable(err)
}

// checkFromSeq rejects a sequence that the source has not reached. An ended run cannot continue
// after its end.
func checkFromSeq(req Fork, of *source) error {
	most := of.head
	if of.ended {
		most--
	}
	if req.FromSeq <= most {
		return nil
	}
	return fault.New(fault.ForkInvalidSeq, "/fromSeq: run %s has %d events; want a sequence from 0 to %d", req.SourceRunID, of.head, most).
		With("sourceRunId", req.SourceRunID).With("fromSeq", req.FromSeq).With("lastSequence", of.head-1)
}

// forkRecord returns the record of a fork, and the body of its start frame. start is the node to edit; nil if
// none is.
func (s *Starter) forkRecord(ctx context.Context, req Fork, source *source, start *NodeStart) (*wire.RunRecord, []byte, error) {
	rec := *source.RunRecord
	rec.RunID, rec.RequestDigest, rec.Traceparent = req.RunID, req.Digest, req.Traceparent
	rec.CreatedAt, rec.Parent = wire.FormatTime(s.deps.Clock()), nil
	rec.Fork = &wire.Fork{
		SourceRunID: req.SourceRunID,
		Mode:        req.Mode,
		FromSeq:     req.FromSeq,
		Head:        source.followed(req.Mode, req.FromSeq),
		Traceparent: source.Traceparent,
	}
	if source.Fork != nil { // what the source executes, its forks execute
		rec.Fork.Edited = source.Fork.Edited
	}
	var err error
	if rec.Fork.Said, err = s.openGateNotes(ctx, source, rec.Fork.Ends()); err != nil {
		return nil, nil, err
	}
	if req.Mode == wire.ForkReplay {
		rec.Fork.Since = source.Since()
		rec.CallbackURL, rec.CredentialRef = "", "" // a replay makes no calls
		body, err := json.Marshal(&rec)             // the source's record was redacted
		return &rec, body, err
	}
	var e *definition.Entry
	if start != nil {
		e, err = s.applyEdit(ctx, &rec, req.Edit, start)
	} else {
		e, err = definition.OfRun(ctx, s.deps.Definitions, source.RunRecord)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := s.applyOverlay(&rec, req, e); err != nil {
		return nil, nil, err
	}
	scope, done, err := s.registerSecrets(ctx, &rec)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	body, err := s.renderRecord(ctx, &rec, scope)
	return &rec, body, err
}

// openGateNotes returns the votes and questions at gates that are open after a number of events of
// the source. They belong to the fork's history, and no event contains them (OpenWOP host contract
// §6.3). A source without gates is not read, nor one whose end is among the events. Such forks are
// accepted at the same speed for any length.
func (s *Starter) openGateNotes(ctx context.Context, source *source, count int) ([]json.RawMessage, error) {
	if source.ended && count == source.head || !s.hasGates(ctx, source.RunRecord) {
		return nil, nil
	}
	frames, err := s.deps.Log.Run(ctx, subject.Run{
		Tenant:     source.Owner.Tenant,
		WorkflowID: source.WorkflowID,
		RunID:      source.RunID,
	})
	if err != nil {
		return nil, readError(err)
	}
	st := runstate.New(source.RunRecord)
	for _, f := range frames {
		events, err := f.Events()
		if err != nil {
			return nil, readError(err)
		}
		for _, e := range events {
			if e.Sequence < count {
				st.Apply(e)
			}
		}
		if f.Last < count {
			st.Remember(wire.ParseNote(f.Note))
		}
	}
	var out []json.RawMessage
	for _, n := range st.Said() {
		out = append(out, strictjson.Render(n))
	}
	return out, nil
}

// hasGates reports whether a run's workflow has nodes that several people may answer; also true if
// its definition is unavailable.
func (s *Starter) hasGates(ctx context.Context, source *wire.RunRecord) bool {
	e, err := definition.OfRun(ctx, s.deps.Definitions, source)
	return err != nil || slices.ContainsFunc(e.Def.Nodes, func(n workflow.Node) bool {
		t, known := node.CurrentOf(s.deps.Types)[n.TypeID]
		return !known || t.Class == node.Asks
	})
}

// applyOverlay merges the overlay into a branch's record, and checks the result against the
// workflow as at creation.
func (s *Starter) applyOverlay(rec *wire.RunRecord, req Fork, e *definition.Entry) (err error) {
	if rec.Configurable, err = mergeObjects(rec.Configurable, req.Overlay.Configurable); err != nil {
		return err
	}
	if req.Overlay.Tags != nil {
		rec.Tags = *req.Overlay.Tags
	}
	if req.Overlay.Metadata != nil {
		rec.Metadata = req.Overlay.Metadata
	}
	if err := s.checkTypes(e.Def); err != nil {
		return err
	}
	rec.TestKey = req.TestKey
	rec.CredentialRef, err = s.checkConfigurable(Request{
		Tenant:       rec.Owner.Tenant,
		Configurable: rec.Configurable,
		TestKey:      req.TestKey,
	}, e.Def)
	s.applyLimits(rec, e.Def.Settings.TimeoutMillis)
	return err
}

// mergeObjects merges the members of one object over those of another.
func mergeObjects(under, over json.RawMessage) (json.RawMessage, error) {
	if len(over) == 0 {
		return under, nil
	}
	all := map[string]json.RawMessage{}
	for _, doc := range []json.RawMessage{under, over} {
		if len(doc) == 0 {
			continue
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(doc, &members); err != nil {
			return nil, fault.InvalidBody("/runOptionsOverlay/configurable", "want a JSON object")
		}
		for name, v := range members {
			all[name] = v
		}
	}
	return json.Marshal(all)
}
