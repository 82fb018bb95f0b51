package engine

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"

	"waybill.dev/waybill/internal/audit"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// AuditLog reads the audit log.
type AuditLog interface {
	Verify(ctx context.Context, tenant string, w audit.Window) (audit.Result, error)
	Page(ctx context.Context, tenant string, from int64, limit int) (page [][]byte, more bool, err error)
}

// recordAudit writes an entry about the caller to the tenant's audit log. It returns when
// the entry is durable, so every acknowledged action is in the log.
func (s *Service) recordAudit(ctx context.Context, action, target string, details map[string]any) error {
	p := auth.From(ctx)
	return s.deps.Recorder.Record(ctx, p.Tenant, audit.Entry{
		Action:  action,
		Actor:   p.KeyID,
		Target:  target,
		Details: details,
	})
}

// recordAttempt records that a caller answers an interrupt, before the answer takes effect.
// A vote that does not decide yet is not an event. Without this entry, a gateway crash after
// the vote would lose the record of who voted or overrode (OpenWOP host contract §6.3).
func (s *Service) recordAttempt(ctx context.Context, req *dispatcherv1.ResolveInterruptRequest, reason string) error {
	details := map[string]any{}
	if reason != "" {
		details["override"] = map[string]any{"reason": reason}
	}
	return s.deps.Recorder.Record(ctx, req.GetTenant(), interruptEntry("interrupt.answering", req, details))
}

// recordRefusal records that a recorded attempt was rejected. A failure after which the
// answer may still have taken effect is not a rejection. The entry is lost if it cannot be
// written.
func (s *Service) recordRefusal(ctx context.Context, req *dispatcherv1.ResolveInterruptRequest, refusal error) {
	code := fault.CodeOf(refusal)
	if row := fault.Lookup(code); row.HTTP >= http.StatusInternalServerError {
		return
	}
	details := map[string]any{"code": string(code)}
	_ = s.deps.Recorder.Record(ctx, req.GetTenant(), interruptEntry("interrupt.refused", req, details))
}

// interruptEntry makes an entry about an answer to an interrupt.
func interruptEntry(action string, req *dispatcherv1.ResolveInterruptRequest, details map[string]any) audit.Entry {
	details["nodeId"], details["interruptId"] = req.GetNodeId(), req.GetInterruptId()
	return audit.Entry{Action: action, Actor: req.GetPrincipal(), Target: "runs/" + req.GetRunId(), Details: details}
}

// recordAnswer records who answered an interrupt and the outcome, also for a vote that does
// not decide yet (OpenWOP host contract §6.3). The answer's content is not recorded, except
// for the reason of an override, which has its own entry. Of a token's holder only the token
// is known.
func (s *Service) recordAnswer(ctx context.Context, req *dispatcherv1.ResolveInterruptRequest, res *dispatcherv1.ResolveInterruptResponse, reason string) error {
	details := map[string]any{"kind": res.GetKind(), "outcome": res.GetOutcome(), "status": res.GetStatus()}
	if v := res.GetVotes(); v != nil {
		details["votes"] = map[string]int32{"accepts": v.GetAccepts(), "rejects": v.GetRejects(), "required": v.GetRequired()}
	}
	entry := interruptEntry("interrupt.answered", req, details)
	st := res.GetStanding()
	if role := st.GetOverride(); role != "" {
		overrode := interruptEntry("approval.overridden", req, map[string]any{
			"outcome": res.GetOutcome(),
			"role":    role,
			"reason":  reason,
		})
		if err := s.deps.Recorder.Record(ctx, req.GetTenant(), overrode); err != nil {
			return err
		}
	} else if st != nil {
		details["standing"] = map[string]any{"listed": st.GetListed(), "groups": st.GetGroups(), "roles": st.GetRoles()}
	}
	return s.deps.Recorder.Record(ctx, req.GetTenant(), entry)
}

func errNoAudit() error {
	return fault.New(fault.NotFound, "this host has no audit log; hosts with one list openwop-audit-log-integrity in auth.profiles of discovery")
}

// VerifyAuditLog verifies the tenant's audit log (OpenWOP host contract §10.7).
func (s *Service) VerifyAuditLog(ctx context.Context, req *openwopv1.VerifyAuditLogRequest) (*openwopv1.VerifyAuditLogResponse, error) {
	if s.deps.AuditLog == nil {
		return nil, errNoAudit()
	}
	var p problems
	if req.GetFromSeq() < 0 {
		p.addQuery("fromSeq", "want an integer of at least 0")
	}
	if req.ToSeq != nil && req.GetToSeq() < max(req.GetFromSeq(), 0) {
		p.addQuery("toSeq", "want an integer of at least fromSeq")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	found, err := s.deps.AuditLog.Verify(ctx, auth.From(ctx).Tenant, audit.Window{FromSeq: req.GetFromSeq(), ToSeq: req.ToSeq})
	if err != nil {
		return nil, err
	}
	out := &openwopv1.VerifyAuditLogResponse{
		FromSeq: found.FromSeq, ToSeq: found.ToSeq, ChainValid: found.ChainValid, CheckpointsValid: found.CheckpointsValid,
	}
	for _, c := range found.Checkpoints {
		out.Checkpoints = append(out.Checkpoints, &openwopv1.AuditCheckpoint{
			Checkpoint: c.ID, AtSequence: c.AtSequence, MerkleRoot: c.MerkleRoot, Signature: c.Signature,
		})
	}
	for _, a := range found.Anomalies {
		out.Anomalies = append(out.Anomalies, &openwopv1.AuditAnomaly{
			AtSeq: a.AtSeq, ExpectedPrevHash: a.ExpectedPrevHash, ActualPrevHash: a.ActualPrevHash,
		})
	}
	return out, nil
}

// ListAuditEntries lists the tenant's audit log as it is stored, oldest first.
func (s *Service) ListAuditEntries(ctx context.Context, req *hostv1.ListAuditEntriesRequest) (*hostv1.ListAuditEntriesResponse, error) {
	if s.deps.AuditLog == nil {
		return nil, errNoAudit()
	}
	limit, err := pageSize(req.Limit)
	if err != nil {
		return nil, err
	}
	from, err := auditCursor(req)
	if err != nil {
		return nil, err
	}
	page, more, err := s.deps.AuditLog.Page(ctx, auth.From(ctx).Tenant, from, int(limit))
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListAuditEntriesResponse{}
	for _, line := range page {
		out.Entries = append(out.Entries, &openwopv1.JsonDocument{Json: line})
	}
	if more {
		next := base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, from+int64(len(page)), 10))
		out.NextCursor = &next
	}
	return out, nil
}

// auditCursor returns the first sequence of a page.
func auditCursor(req *hostv1.ListAuditEntriesRequest) (int64, error) {
	switch {
	case req.FromSeq != nil && req.Cursor != nil:
		return 0, fault.InvalidQuery("fromSeq", "cannot be combined with cursor")
	case req.GetFromSeq() < 0:
		return 0, fault.InvalidQuery("fromSeq", "want an integer of at least 0")
	case req.Cursor == nil:
		return req.GetFromSeq(), nil
	}
	text, err := base64.RawURLEncoding.DecodeString(req.GetCursor())
	if err == nil {
		var from int64
		if from, err = strconv.ParseInt(string(text), 10, 64); err == nil && from >= 0 {
			return from, nil
		}
	}
	return 0, errCursor()
}
