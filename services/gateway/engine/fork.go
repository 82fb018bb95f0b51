package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/idempotency"
	"waybill.dev/waybill/services/gateway/wirejson"
)

// forkOperation is the operation name of idempotency keys of forks.
const forkOperation = "POST /v1/runs/{runId}:fork"

// ForkModes lists the modes of a fork.
func ForkModes() []string { return []string{string(wire.ForkReplay), string(wire.ForkBranch)} }

// ForkRun starts a run from another run's history (OpenWOP host contract §7.1).
func (s *Service) ForkRun(ctx context.Context, req *openwopv1.ForkRunRequest) (*openwopv1.ForkRunResponse, error) {
	over, err := checkFork(req)
	if err != nil {
		return nil, err
	}
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	key, keyed := metaValue(ctx, MetaIdempotencyKey)
	if !keyed {
		return s.fork(ctx, req, over, nil, "run_"+newID(), "")
	}
	return s.forkKeyed(ctx, req, over, key)
}

// forkKeyed derives the fork's id from the key, as createKeyed does for runs.
func (s *Service) forkKeyed(ctx context.Context, req *openwopv1.ForkRunRequest, over overlay, key string) (*openwopv1.ForkRunResponse, error) {
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
	tenant := auth.From(ctx).Tenant
	r := idempotency.Request{Tenant: tenant, Operation: forkOperation, Key: key, Digest: digest}
	if a, err := s.deps.Idempotency.Recorded(ctx, r); err != nil {
		return nil, err
	} else if a != nil && a.Err != nil {
		setMeta(ctx, MetaReplay, "true")
		return nil, a.Err
	}
	res, err := s.fork(ctx, req, over, nil, s.derivedID(forkOperation, tenant, key), digest)
	if e, ok := fault.As(err); ok {
		s.deps.Idempotency.RecordFailure(ctx, r, e)
	}
	return res, err
}

// fork starts a fork. edit is nil unless a node is edited; it determines fromSeq then.
func (s *Service) fork(
	ctx context.Context, req *openwopv1.ForkRunRequest, over overlay, edit *dispatcherv1.NodeEdit, runID, digest string,
) (*openwopv1.ForkRunResponse, error) {
	p := auth.From(ctx)
	ask := &dispatcherv1.ForkRunRequest{
		Tenant:        p.Tenant,
		SourceRunId:   req.GetRunId(),
		RunId:         runID,
		RequestDigest: digest,
		Mode:          req.GetMode(),
		FromSeq:       req.GetFromSeq(),
		Configurable:  over.Configurable,
		Metadata:      over.Metadata,
		TestKey:       p.TestKey,
		Traceparent:   traceparent(ctx),
		Edit:          edit,
	}
	if over.Tags != nil {
		ask.Tags, ask.SetsTags = *over.Tags, true
	}
	res, err := s.deps.Dispatcher.ForkRun(ctx, ask)
	if err != nil {
		return nil, err
	}
	if res.GetReplayed() {
		setMeta(ctx, MetaReplay, "true")
	}
	details := map[string]any{
		"runId": res.GetRunId(), "mode": req.GetMode(), "fromSeq": res.GetFromSeq(), "repeated": res.GetReplayed(),
	}
	if edit != nil {
		details["nodeId"], details["edited"], details["only"] = edit.GetNodeId(), editedParts(edit), edit.GetOnly()
	}
	if err := s.recordAudit(ctx, "run.forked", "runs/"+req.GetRunId(), details); err != nil {
		return nil, err
	}
	setMeta(ctx, MetaStatus, "201")
	return &openwopv1.ForkRunResponse{
		RunId:       res.GetRunId(),
		SourceRunId: req.GetRunId(),
		FromSeq:     res.GetFromSeq(),
		Mode:        req.GetMode(),
		Status:      res.GetStatus(),
		EventsUrl:   s.cfg.BaseURL() + "/v1/runs/" + res.GetRunId() + "/events",
	}, nil
}

// overlay replaces parts of the source's configuration in a branch.
type overlay struct {
	Configurable json.RawMessage `json:"configurable"`
	Tags         *[]string       `json:"tags"`
	Metadata     json.RawMessage `json:"metadata"`
}

const overlayPath = "/runOptionsOverlay"

// checkFork validates a fork request as far as possible without the run.
func checkFork(req *openwopv1.ForkRunRequest) (overlay, error) {
	var p problems
	mode := wire.ForkMode(req.GetMode())
	switch {
	case !slices.Contains(ForkModes(), req.GetMode()):
		p.add("/mode", "want replay or branch")
	case mode == wire.ForkBranch && req.FromSeq == nil:
		p.add("/fromSeq", "required in mode branch: the sequence from which the branch executes again")
	}
	if req.GetFromSeq() < 0 {
		p.add("/fromSeq", "want an integer of at least 0")
	}
	over, members := readOverlay(&p, req.GetRunOptionsOverlay())
	if mode == wire.ForkReplay && members > 0 {
		p.add(overlayPath, "not allowed in mode replay, which repeats its source; use mode branch")
	}
	return over, p.err()
}

// readOverlay reads the overlay and returns the number of its members.
func readOverlay(p *problems, doc *openwopv1.JsonDocument) (overlay, int) {
	var over overlay
	if doc == nil {
		return over, 0
	}
	before := len(*p)
	checkDocument(p, overlayPath, doc)
	var members map[string]json.RawMessage
	if len(*p) > before || json.Unmarshal(doc.GetJson(), &members) != nil {
		return over, 0
	}
	for name, v := range members {
		switch name {
		case "configurable":
			over.Configurable = v
		case "metadata":
			over.Metadata = v
		case "tags":
			over.Tags = &[]string{}
			if json.Unmarshal(v, over.Tags) != nil || bytes.Equal(v, []byte("null")) {
				p.add(overlayPath+"/tags", "want an array of strings")
			}
		default:
			p.add(overlayPath+"/"+name, "unknown member; known are configurable, tags, metadata")
		}
	}
	checkOverlay(p, over)
	return over, len(members)
}

// checkOverlay applies the rules of run creation to an overlay.
func checkOverlay(p *problems, over overlay) {
	var found problems
	for name, doc := range map[string]json.RawMessage{"/configurable": over.Configurable, "/metadata": over.Metadata} {
		if doc != nil {
			checkDocument(&found, name, &openwopv1.JsonDocument{Json: doc})
		}
	}
	if over.Tags != nil {
		checkTags(&found, *over.Tags)
	}
	if len(found) == 0 {
		checkMetadata(&found, over.Metadata)
		checkConfigurable(&found, over.Configurable)
	}
	for _, f := range found {
		p.add(overlayPath+f.Path, "%s", f.Message)
	}
}
