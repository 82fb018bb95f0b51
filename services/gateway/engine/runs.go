package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/idempotency"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// createOperation is the operation name of idempotency keys of creations.
const createOperation = "POST /v1/runs"

// CreateRun starts a run (OpenWOP host contract §2.3).
func (s *Service) CreateRun(ctx context.Context, req *openwopv1.CreateRunRequest) (*openwopv1.CreateRunResponse, error) {
	p := auth.From(ctx)
	if req.TenantId != nil && req.GetTenantId() != p.Tenant {
		return nil, fault.New(fault.Forbidden, "/tenantId names another tenant than the credential's")
	}
	if err := checkCreate(req, func(url string) string { return s.callbackProblem(ctx, url) }); err != nil {
		return nil, err
	}
	if err := checkHeaders(ctx, p); err != nil {
		return nil, err
	}
	if err := s.ensureCallback(ctx, p.Tenant, req); err != nil {
		return nil, err
	}
	key, keyed := metaValue(ctx, MetaIdempotencyKey)
	if !keyed {
		return s.create(ctx, p, req, "run_"+newID(), "")
	}
	return s.createKeyed(ctx, p, req, key)
}

// createKeyed derives the run's id from the key, so a repeated creation finds the first
// one's frame in the log. Only final failures are recorded.
func (s *Service) createKeyed(ctx context.Context, p *auth.Principal, req *openwopv1.CreateRunRequest, key string) (*openwopv1.CreateRunResponse, error) {
	if err := idempotency.CheckKey(key); err != nil {
		return nil, err
	}
	doc, err := wirejson.Append(nil, req)
	if err != nil {
		return nil, err
	}
	digest, err := idempotency.Digest(doc)
	if err != nil {
		return nil, err
	}
	r := idempotency.Request{Tenant: p.Tenant, Operation: createOperation, Key: key, Digest: digest}
	if a, err := s.deps.Idempotency.Recorded(ctx, r); err != nil {
		return nil, err
	} else if a != nil && a.Err != nil {
		setMeta(ctx, MetaReplay, "true")
		return nil, a.Err
	}
	res, err := s.create(ctx, p, req, s.derivedID(createOperation, p.Tenant, key), digest)
	if e, ok := fault.As(err); ok {
		s.deps.Idempotency.RecordFailure(ctx, r, e)
	}
	return res, err
}

func (s *Service) create(ctx context.Context, p *auth.Principal, req *openwopv1.CreateRunRequest, runID, digest string) (*openwopv1.CreateRunResponse, error) {
	dedup, _ := metaValue(ctx, MetaDedup)
	transport, _ := metaValue(ctx, MetaTransport)
	res, err := s.deps.Dispatcher.StartRun(ctx, &dispatcherv1.StartRunRequest{
		Tenant:        p.Tenant,
		Principal:     p.KeyID,
		WorkflowId:    req.GetWorkflowId(),
		RunId:         runID,
		RequestDigest: digest,
		Inputs:        req.GetInputs().GetJson(),
		Configurable:  req.GetConfigurable().GetJson(),
		Metadata:      req.GetMetadata().GetJson(),
		Tags:          req.GetTags(),
		ScopeId:       req.GetScopeId(),
		CallbackUrl:   req.GetCallbackUrl(),
		Transport:     transport,
		Dedup:         strings.EqualFold(dedup, "enforce"),
		TestKey:       p.TestKey,
		Traceparent:   traceparent(ctx),
	})
	if err != nil {
		return nil, err
	}
	if res.GetReplayed() {
		setMeta(ctx, MetaReplay, "true")
	}
	setMeta(ctx, MetaStatus, "201")
	base := s.cfg.BaseURL() + "/v1/runs/" + res.GetRunId()
	return &openwopv1.CreateRunResponse{
		RunId:      res.GetRunId(),
		WorkflowId: res.GetWorkflowId(),
		Status:     res.GetStatus(),
		EventsUrl:  base + "/events",
		StatusUrl:  base,
	}, nil
}

// checkHeaders validates the request's headers.
func checkHeaders(ctx context.Context, p *auth.Principal) error {
	if v, ok := metaValue(ctx, MetaDedup); ok && !strings.EqualFold(v, "enforce") {
		return fault.InvalidHeader("X-Dedup", "want enforce, or leave the header out")
	}
	v, ok := metaValue(ctx, MetaForceEngine)
	if !ok {
		return nil
	}
	if !p.TestKey {
		return fault.New(fault.ForceEngineForbidden, "X-Force-Engine-Version needs a test key")
	}
	if n, err := strconv.Atoi(v); err != nil || n != wire.EngineVersion {
		return fault.New(fault.UnsupportedForceEngine, "X-Force-Engine-Version: this host has one engine version").
			With("min", wire.EngineVersion).With("max", wire.EngineVersion)
	}
	return nil
}

var idEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// idBytes gives ids of 26 characters.
const idBytes = 16

// newID returns a new id. Later ids sort after earlier ones (RFC 9562 §5.7), so runs created
// together are adjacent in an index.
func newID() string {
	id := uuid.Must(uuid.NewV7()) // the random source never fails
	return idEncoding.EncodeToString(id[:])
}

// derivedID returns the run id of a tenant's idempotency key. It is keyed, so that no client
// can choose another run's id.
func (s *Service) derivedID(operation, tenant, key string) string {
	m := hmac.New(sha256.New, s.cfg.RunKey)
	fmt.Fprintf(m, "%s\x00%s\x00%s", tenant, operation, key)
	return "run_" + idEncoding.EncodeToString(m.Sum(nil)[:idBytes])
}

// checkRunID rejects invalid run ids, which must not be used in a subject.
func checkRunID(id string) error {
	if !subject.Token(id) {
		return fault.NoRun()
	}
	return nil
}

// GetRun returns a run's snapshot (OpenWOP host contract §2.4).
func (s *Service) GetRun(ctx context.Context, req *openwopv1.GetRunRequest) (*openwopv1.GetRunResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	res, err := s.deps.EventLog.GetRun(ctx, &eventlogv1.GetRunRequest{
		Tenant: auth.From(ctx).Tenant,
		RunId:  req.GetRunId(),
	})
	if err != nil {
		return nil, err
	}
	snapshot, tag := s.presentSnapshot(ctx, res.GetSnapshot())
	snapshot, blockedTag := s.withRunStatus(ctx, req.GetRunId(), snapshot, res)
	setMeta(ctx, MetaETag, `"`+req.GetRunId()+"."+strconv.Itoa(int(res.GetLastSequence()))+tag+blockedTag+`"`, MetaCache, "private, no-cache")
	return &openwopv1.GetRunResponse{Snapshot: &openwopv1.JsonDocument{Json: snapshot}}, nil
}

// maxReason limits the reason of a cancellation, in characters.
const maxReason = 512

// CancelRun cancels a run (OpenWOP host contract §2.5).
func (s *Service) CancelRun(ctx context.Context, req *openwopv1.CancelRunRequest) (*openwopv1.CancelRunResponse, error) {
	if err := checkReason(req.GetReason()); err != nil {
		return nil, err
	}
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	res, err := s.cancel(ctx, req.GetRunId(), req.GetReason())
	if err != nil {
		return nil, err
	}
	out := &openwopv1.CancelRunResponse{RunId: req.GetRunId(), Status: res.GetStatus()}
	if res.GetAlreadyTerminal() && res.GetStatus() != string(wire.StatusCancelled) {
		out.AlreadyTerminal = proto.Bool(true)
	}
	return out, nil
}

func (s *Service) cancel(ctx context.Context, runID, reason string) (*dispatcherv1.CancelRunResponse, error) {
	p := auth.From(ctx)
	reason, err := s.redactReason(ctx, runID, reason)
	if err != nil {
		return nil, err
	}
	res, err := s.deps.Dispatcher.CancelRun(ctx, &dispatcherv1.CancelRunRequest{
		Tenant: p.Tenant, RunId: runID, Reason: reason, CancelledBy: p.KeyID,
	})
	if err != nil {
		return nil, err
	}
	return res, s.recordAudit(ctx, "run.cancelled", "runs/"+runID, map[string]any{
		"reason": reason, "status": res.GetStatus(), "alreadyTerminal": res.GetAlreadyTerminal(),
	})
}

const maxBulk = 100

// BulkCancelRuns cancels up to 100 runs independently (OpenWOP host contract §2.6).
func (s *Service) BulkCancelRuns(ctx context.Context, req *openwopv1.BulkCancelRunsRequest) (*openwopv1.BulkCancelRunsResponse, error) {
	if err := checkBulk(req); err != nil {
		return nil, err
	}
	out := &openwopv1.BulkCancelRunsResponse{}
	done := map[string]*openwopv1.BulkCancelResult{}
	for _, id := range req.GetRunIds() {
		if done[id] == nil {
			done[id] = s.cancelOne(ctx, id, req.GetReason())
		}
		out.Results = append(out.Results, done[id])
	}
	return out, nil
}

func checkBulk(req *openwopv1.BulkCancelRunsRequest) error {
	var p problems
	switch n := len(req.GetRunIds()); {
	case n == 0:
		p.add("/runIds", "required: 1 to %d run ids", maxBulk)
	case n > maxBulk:
		return fault.InvalidBody("/runIds", "want at most %d run ids, got %d", maxBulk, n).With("maxRunIds", maxBulk)
	}
	for i, id := range req.GetRunIds() {
		if id == "" || len(id) > 128 {
			p.add("/runIds/"+strconv.Itoa(i), "want a string of 1 to 128 characters")
		}
	}
	if len([]rune(req.GetReason())) > maxReason {
		p.add("/reason", "want at most %d characters", maxReason)
	}
	return p.err()
}

func (s *Service) cancelOne(ctx context.Context, id, reason string) *openwopv1.BulkCancelResult {
	res, err := (*dispatcherv1.CancelRunResponse)(nil), checkRunID(id)
	if err == nil {
		res, err = s.cancel(ctx, id, reason)
	}
	if err != nil {
		return bulkFailure(id, err)
	}
	if res.GetAlreadyTerminal() && res.GetStatus() != string(wire.StatusCancelled) {
		return bulkFailure(id, fault.New(fault.RunTerminal, "the run has already ended: %s", res.GetStatus()))
	}
	status := res.GetStatus()
	return &openwopv1.BulkCancelResult{RunId: id, Ok: true, Status: &status}
}

func bulkFailure(id string, err error) *openwopv1.BulkCancelResult {
	e, ok := fault.As(err)
	if !ok {
		e = fault.New(fault.InternalError, "something failed inside the host; try again")
	}
	code := e.Code
	if code == fault.RunNotFound { // the per-entry codes are a closed set
		code = fault.NotFound
	}
	return &openwopv1.BulkCancelResult{
		RunId: id,
		Error: &openwopv1.BulkCancelError{Code: string(code), Error: string(code), Message: e.Message},
	}
}
