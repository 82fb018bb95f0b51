package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// Limits of an annotation's texts, in characters, and of a rating.
const (
	maxNote       = 8192
	maxCorrection = 65_536
	maxLabel      = 256
	maxAnchor     = 256
	maxRating     = 5
)

func errNoAnnotations() error {
	return fault.New(fault.CapabilityNotProvided, "this host does not support annotations; hosts that do set feedback.supported in discovery")
}

// CreateAnnotation stores an annotation of a run (OpenWOP host contract §2.8).
func (s *Service) CreateAnnotation(ctx context.Context, req *hostv1.CreateAnnotationRequest) (*hostv1.CreateAnnotationResponse, error) {
	if s.deps.Annotations == nil {
		return nil, errNoAnnotations()
	}
	if err := checkAnnotation(req); err != nil {
		return nil, err
	}
	run, err := s.runOf(ctx, req.GetRunId())
	if err != nil {
		return nil, err
	}
	if err := s.checkTarget(ctx, req, run); err != nil {
		return nil, err
	}
	p := auth.From(ctx)
	doc, err := s.deps.Annotations.Add(ctx, p.Tenant, Annotation{
		Target: AnnotationTarget{
			RunID:   req.GetRunId(),
			EventID: req.GetTarget().GetEventId(),
			NodeID:  req.GetTarget().GetNodeId(),
		},
		Signal: Signal{
			Kind:       SignalKind(req.GetSignal().GetKind()),
			Rating:     req.GetSignal().Rating,
			Correction: req.GetSignal().Correction,
			Label:      req.GetSignal().Label,
		},
		Actor: AnnotationActor{PrincipalRef: p.KeyID}, Note: req.Note,
	})
	if err != nil {
		return nil, err
	}
	return &hostv1.CreateAnnotationResponse{Annotation: &openwopv1.JsonDocument{Json: doc}}, nil
}

// annotationReference returns an answer with the id of its annotation only.
func annotationReference(r *hostv1.CreateAnnotationResponse) *hostv1.CreateAnnotationResponse {
	var a struct {
		ID string `json:"annotationId"`
	}
	_ = json.Unmarshal(r.GetAnnotation().GetJson(), &a) // this host has rendered it
	doc, _ := json.Marshal(a)
	return &hostv1.CreateAnnotationResponse{Annotation: &openwopv1.JsonDocument{Json: doc}}
}

// restoreAnnotation completes a recorded answer. Answers of earlier builds are complete.
func (s *Service) restoreAnnotation(ctx context.Context, req *hostv1.CreateAnnotationRequest, r *hostv1.CreateAnnotationResponse) error {
	var a struct {
		ID string `json:"annotationId"`
	}
	if err := json.Unmarshal(r.GetAnnotation().GetJson(), &a); err != nil {
		return fmt.Errorf("read recorded answer: %w", err)
	}
	doc, err := s.deps.Annotations.Get(ctx, auth.From(ctx).Tenant, req.GetRunId(), a.ID)
	if err != nil {
		return err
	}
	r.Annotation = &openwopv1.JsonDocument{Json: doc}
	return nil
}

// ListAnnotations lists the annotations of a run, oldest first.
func (s *Service) ListAnnotations(ctx context.Context, req *hostv1.ListAnnotationsRequest) (*hostv1.ListAnnotationsResponse, error) {
	if s.deps.Annotations == nil {
		return nil, errNoAnnotations()
	}
	if _, err := s.runOf(ctx, req.GetRunId()); err != nil {
		return nil, err
	}
	list, err := s.deps.Annotations.List(ctx, auth.From(ctx).Tenant, req.GetRunId())
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListAnnotationsResponse{}
	for _, doc := range list {
		out.Annotations = append(out.Annotations, &openwopv1.JsonDocument{Json: doc})
	}
	return out, nil
}

// runOf returns a run of the caller's tenant.
func (s *Service) runOf(ctx context.Context, runID string) (*eventlogv1.GetRunResponse, error) {
	if err := checkRunID(runID); err != nil {
		return nil, err
	}
	return s.deps.EventLog.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: auth.From(ctx).Tenant, RunId: runID})
}

// checkTarget rejects an event or a node that the run does not have. The error does not repeat
// it, as it may be anything.
func (s *Service) checkTarget(ctx context.Context, req *hostv1.CreateAnnotationRequest, run *eventlogv1.GetRunResponse) error {
	t := req.GetTarget()
	if t != nil && t.EventId != nil && !isEventOf(req.GetRunId(), t.GetEventId(), run.GetLastSequence()) {
		return fault.InvalidBody("/target/eventId", "the run has no event with this id")
	}
	if t == nil || t.NodeId == nil {
		return nil
	}
	has, err := s.hasNode(ctx, run.GetSnapshot(), t.GetNodeId())
	if err == nil && !has {
		err = fault.InvalidBody("/target/nodeId", "the run has no node with this id")
	}
	return err
}

// hasNode reports whether a run has a node: one that has begun, or one of its workflow.
func (s *Service) hasNode(ctx context.Context, snapshot []byte, id string) (bool, error) {
	var run struct {
		WorkflowID string                     `json:"workflowId"`
		NodeStates map[string]json.RawMessage `json:"nodeStates"`
	}
	if err := json.Unmarshal(snapshot, &run); err != nil {
		return false, fmt.Errorf("read snapshot: %w", err)
	}
	if run.NodeStates[id] != nil {
		return true, nil
	}
	res, err := s.deps.Dispatcher.GetWorkflow(ctx, &dispatcherv1.GetWorkflowRequest{
		Tenant:     auth.From(ctx).Tenant,
		WorkflowId: run.WorkflowID,
	})
	if fault.CodeOf(err) == fault.WorkflowNotFound { // as of a run of an external executor
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var def struct {
		Nodes []struct {
			ID string `json:"id"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(res.GetDefinition(), &def); err != nil {
		return false, fmt.Errorf("read definition: %w", err)
	}
	for _, n := range def.Nodes {
		if n.ID == id {
			return true, nil
		}
	}
	return false, nil
}

func isEventOf(runID, id string, head int32) bool {
	seq, err := strconv.Atoi(id[strings.LastIndexByte(id, '_')+1:])
	return err == nil && seq >= 0 && seq <= int(head) && wire.EventID(runID, seq) == id
}

func checkAnnotation(req *hostv1.CreateAnnotationRequest) error {
	var p problems
	sig := req.GetSignal()
	bounded := func(path string, text *string, limit int) {
		if text != nil && utf8.RuneCountInString(*text) > limit {
			p.add(path, "want at most %d characters", limit)
		}
	}
	switch kind := SignalKind(sig.GetKind()); {
	case sig == nil:
		p.add("/signal", "required: an object with the kind of the signal")
	case !slices.Contains(SignalKinds(), kind):
		p.add("/signal/kind", "want one of %v", SignalKinds())
	case kind == SignalRating && sig.Rating == nil:
		p.add("/signal/rating", "required: 1 to %d", maxRating)
	case kind == SignalCorrection && sig.Correction == nil:
		p.add("/signal/correction", "required: the corrected text")
	case kind == SignalLabel && sig.Label == nil:
		p.add("/signal/label", "required: the label")
	}
	if sig != nil && sig.Rating != nil && (sig.GetRating() < 1 || sig.GetRating() > maxRating) {
		p.add("/signal/rating", "want 1 to %d", maxRating)
	}
	if sig != nil {
		bounded("/signal/correction", sig.Correction, maxCorrection)
		bounded("/signal/label", sig.Label, maxLabel)
	}
	bounded("/note", req.Note, maxNote)
	if t := req.GetTarget(); t != nil {
		bounded("/target/eventId", t.EventId, maxAnchor)
		bounded("/target/nodeId", t.NodeId, maxAnchor)
	}
	return p.err()
}
