package seam

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// surfaceWorkflow is the workflow of runs that a surface has opened.
const surfaceWorkflow = "conformance-a2ui-surface"

// emitSurface passes a surface to the accept pipeline of a run, which is opened if it does
// not exist. A repeated surface returns the recorded one (OpenWOP envelope contract §18,
// §23.5).
func (h *Handler) emitSurface(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		RunID   string          `json:"runId"`
		Surface json.RawMessage `json:"surface"`
	}
	if err := decodeBody(body, &req); err != nil {
		return nil, err
	}
	if req.RunID == "" || req.Surface == nil {
		return nil, argument("runId and surface are required")
	}
	run, err := h.surfaceRun(ctx, req.RunID)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(req.Surface)
	id := hex.EncodeToString(sum[:12])
	envelope, err := json.Marshal(map[string]any{
		"type":          "ui.a2ui-surface",
		"schemaVersion": 1,
		"envelopeId":    "surface-" + id,
		"correlationId": req.RunID + ":surface:" + id,
		"payload":       req.Surface,
		"meta": map[string]any{
			"source": "system",
			"ts":     wire.FormatTime(time.Unix(0, 0)), // constant, so that repetitions are equal
		},
	})
	if err != nil {
		return nil, err
	}
	res, err := h.Acceptor.Accept(ctx, &acceptorv1.AcceptRequest{Run: run, NodeId: "surface", Envelope: envelope})
	if err != nil {
		return nil, err
	}
	var o struct{ Status, Reason, EnvelopeID string }
	if err := json.Unmarshal(res.GetOutcome(), &o); err != nil {
		return nil, err
	}
	if o.Status != "accepted" {
		code, message, _ := strings.Cut(o.Reason, ": ")
		if message == "" {
			message = "the surface was rejected"
		}
		return nil, fault.New(fault.Code(code), "%s", message)
	}
	return map[string]any{"surfaceRef": o.EnvelopeID}, nil
}

// surfaceRun opens the run, or finds one that the dispatcher executes.
func (h *Handler) surfaceRun(ctx context.Context, runID string) (*runlogv1.RunRef, error) {
	run := &runlogv1.RunRef{Tenant: auth.From(ctx).Tenant, WorkflowId: surfaceWorkflow, RunId: runID}
	_, err := h.Acceptor.OpenRun(ctx, &acceptorv1.OpenRunRequest{Run: run, NoSecrets: true})
	if fault.CodeOf(err) != fault.Conflict {
		return run, err
	}
	docs, err := h.readLog(ctx, runID)
	if err != nil || len(docs) == 0 {
		return nil, fault.New(fault.Conflict, "the run has not started yet; retry")
	}
	var started struct {
		Payload struct{ WorkflowID string }
	}
	if err := json.Unmarshal(docs[0], &started); err != nil {
		return nil, err
	}
	run.WorkflowId = started.Payload.WorkflowID
	return run, nil
}
