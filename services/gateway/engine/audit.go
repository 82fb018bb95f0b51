package engine

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
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
	// End returns the sequence after the last entry.
	End(ctx context.Context, tenant string) (int64, error)
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

// ListAuditEntries lists the tenant's audit log as it is stored, oldest first unless the request asks
// for the newest.
func (s *Service) ListAuditEntries(ctx context.Context, req *hostv1.ListAuditEntriesRequest) (*hostv1.ListAuditEntriesResponse, error) {
	if s.deps.AuditLog == nil {
		return nil, errNoAudit()
	}
	limit, err := pageSize(req.Limit)
	if err != nil {
		return nil, err
	}
	at, err := auditCursor(req)
	if err != nil {
		return nil, err
	}
	if req.GetNewestFirst() {
		return s.newestAudit(ctx, at, int64(limit))
	}
	page, more, err := s.deps.AuditLog.Page(ctx, auth.From(ctx).Tenant, max(at, 0), int(limit))
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListAuditEntriesResponse{Entries: auditDocuments(page)}
	if more {
		out.NextCursor = auditPlace(max(at, 0) + int64(len(page)))
	}
	return out, nil
}

// newestAudit returns the entries before a sequence, the newest first; a negative one is the end.
func (s *Service) newestAudit(ctx context.Context, before, limit int64) (*hostv1.ListAuditEntriesResponse, error) {
	tenant := auth.From(ctx).Tenant
	end, err := s.deps.AuditLog.End(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if before < 0 || before > end {
		before = end
	}
	out := &hostv1.ListAuditEntriesResponse{}
	from := max(before-limit, 0)
	if from == before {
		return out, nil
	}
	page, _, err := s.deps.AuditLog.Page(ctx, tenant, from, int(before-from))
	if err != nil {
		return nil, err
	}
	slices.Reverse(page)
	if out.Entries = auditDocuments(page); from > 0 {
		out.NextCursor = auditPlace(from)
	}
	return out, nil
}

func auditDocuments(page [][]byte) []*openwopv1.JsonDocument {
	var out []*openwopv1.JsonDocument
	for _, line := range page {
		out = append(out, &openwopv1.JsonDocument{Json: line})
	}
	return out
}

// auditPlace returns the cursor of a sequence.
func auditPlace(seq int64) *string {
	place := base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, seq, 10))
	return &place
}

// auditCursor returns the sequence of a page; -1 is the start of the list.
func auditCursor(req *hostv1.ListAuditEntriesRequest) (int64, error) {
	switch {
	case req.FromSeq != nil && req.Cursor != nil:
		return 0, fault.InvalidQuery("fromSeq", "cannot be combined with cursor")
	case req.FromSeq != nil && req.GetNewestFirst():
		return 0, fault.InvalidQuery("fromSeq", "cannot be combined with newestFirst")
	case req.GetFromSeq() < 0:
		return 0, fault.InvalidQuery("fromSeq", "want an integer of at least 0")
	case req.FromSeq != nil:
		return req.GetFromSeq(), nil
	case req.Cursor == nil:
		return -1, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(req.GetCursor())
	if err == nil {
		var at int64
		if at, err = strconv.ParseInt(string(text), 10, 64); err == nil && at >= 0 {
			return at, nil
		}
	}
	return 0, errCursor()
}
