package engine

import (
	"context"
	"encoding/base64"
	"path"
	"strings"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/gateway/auth"
)

// GetCapabilities returns the discovery document (OpenWOP host contract §1).
func (s *Service) GetCapabilities(ctx context.Context, _ *openwopv1.GetCapabilitiesRequest) (*openwopv1.GetCapabilitiesResponse, error) {
	d, err := s.deps.Discovery.Document(ctx)
	if err != nil {
		return nil, err
	}
	setMeta(ctx, MetaETag, d.ETag, MetaCapTag, strings.Trim(d.ETag, `"`), MetaCache, publicCache)
	return &openwopv1.GetCapabilitiesResponse{Document: &openwopv1.JsonDocument{Json: d.JSON}}, nil
}

// publicCache is for documents that are equal for all callers.
const publicCache = "public, max-age=300"

// GetWorkflow returns a definition, verbatim.
func (s *Service) GetWorkflow(ctx context.Context, req *openwopv1.GetWorkflowRequest) (*openwopv1.GetWorkflowResponse, error) {
	res, err := s.deps.Dispatcher.GetWorkflow(ctx, &dispatcherv1.GetWorkflowRequest{
		Tenant:     auth.From(ctx).Tenant,
		WorkflowId: req.GetWorkflowId(),
		Version:    req.GetVersion(),
	})
	if err != nil {
		return nil, err
	}
	return &openwopv1.GetWorkflowResponse{Definition: &openwopv1.JsonDocument{Json: res.GetDefinition()}}, nil
}

// PutWorkflow registers a definition for the caller's tenant.
func (s *Service) PutWorkflow(ctx context.Context, req *hostv1.PutWorkflowRequest) (*hostv1.PutWorkflowResponse, error) {
	res, err := s.deps.Dispatcher.PutWorkflow(ctx, &dispatcherv1.PutWorkflowRequest{
		Tenant: auth.From(ctx).Tenant, Definition: req.GetDefinition().GetJson(),
	})
	if err != nil {
		return nil, err
	}
	s.deps.Discovery.Changed()
	out := &hostv1.PutWorkflowResponse{
		WorkflowId: res.GetWorkflowId(), Version: res.GetVersion(), Digest: res.GetDigest(), Created: res.GetCreated(),
	}
	err = s.recordAudit(ctx, "workflow.registered", "workflows/"+out.GetWorkflowId(), map[string]any{
		"version": out.GetVersion(), "digest": out.GetDigest(), "created": out.GetCreated(),
	})
	if err != nil {
		return nil, err
	}
	out.Warnings = workflowWarnings(res.GetWarnings())
	setPutStatus(ctx, out)
	return out, nil
}

func workflowWarnings(found []*dispatcherv1.WorkflowWarning) []*hostv1.WorkflowWarning {
	out := make([]*hostv1.WorkflowWarning, len(found))
	for i, w := range found {
		out[i] = &hostv1.WorkflowWarning{Path: w.GetPath(), Rule: w.GetRule(), Message: w.GetMessage()}
	}
	return out
}

// ValidateWorkflow checks a definition without registering it.
func (s *Service) ValidateWorkflow(ctx context.Context, req *hostv1.ValidateWorkflowRequest) (*hostv1.ValidateWorkflowResponse, error) {
	res, err := s.deps.Dispatcher.PutWorkflow(ctx, &dispatcherv1.PutWorkflowRequest{
		Tenant: auth.From(ctx).Tenant, Definition: req.GetDefinition().GetJson(), ValidateOnly: true,
	})
	if err != nil {
		return nil, err
	}
	return &hostv1.ValidateWorkflowResponse{
		Valid:    len(res.GetProblems()) == 0,
		Problems: workflowWarnings(res.GetProblems()),
		Warnings: workflowWarnings(res.GetWarnings()),
	}, nil
}

// ListWorkflowVersions lists the versions of a workflow, the current one first.
func (s *Service) ListWorkflowVersions(ctx context.Context, req *hostv1.ListWorkflowVersionsRequest) (*hostv1.ListWorkflowVersionsResponse, error) {
	res, err := s.deps.Dispatcher.ListWorkflowVersions(ctx, &dispatcherv1.ListWorkflowVersionsRequest{
		Tenant: auth.From(ctx).Tenant, WorkflowId: req.GetWorkflowId(),
	})
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListWorkflowVersionsResponse{WorkflowId: req.GetWorkflowId(), Warnings: res.GetWarnings()}
	out.Origin, out.File = origin(res.GetTenant(), res.GetSource())
	for _, v := range res.GetVersions() {
		out.Versions = append(out.Versions, &hostv1.WorkflowVersion{Version: v.GetVersion(), Digest: v.GetDigest(), Current: v.GetCurrent()})
	}
	return out, nil
}

// DiffWorkflow compares two versions of a workflow.
func (s *Service) DiffWorkflow(ctx context.Context, req *hostv1.DiffWorkflowRequest) (*hostv1.DiffWorkflowResponse, error) {
	if req.GetFrom() == "" {
		return nil, fault.InvalidQuery("from", "required: a version to compare")
	}
	definition := func(version string) (*dispatcherv1.GetWorkflowResponse, error) {
		return s.deps.Dispatcher.GetWorkflow(ctx, &dispatcherv1.GetWorkflowRequest{
			Tenant: auth.From(ctx).Tenant, WorkflowId: req.GetWorkflowId(), Version: version,
		})
	}
	before, err := definition(req.GetFrom())
	if err != nil {
		return nil, err
	}
	after, err := definition(req.GetTo())
	if err != nil {
		return nil, err
	}
	out := &hostv1.DiffWorkflowResponse{WorkflowId: req.GetWorkflowId(), From: req.GetFrom(), To: versionOf(after.GetDefinition())}
	for _, c := range workflow.Compare(before.GetDefinition(), after.GetDefinition()) {
		out.Changes = append(out.Changes, &hostv1.WorkflowChange{Op: c.Op, Path: c.Path, Old: document(c.Old), New: document(c.New)})
	}
	return out, nil
}

// versionOf returns the version of a definition.
func versionOf(definition []byte) string {
	version, _ := strictjson.String(strictjson.Object(definition)["version"])
	return version
}

// document returns a JSON document; nil for none.
func document(doc []byte) *openwopv1.JsonDocument {
	if doc == nil {
		return nil
	}
	return &openwopv1.JsonDocument{Json: doc}
}

// DeleteWorkflow deletes a workflow of the caller's tenant, or one version of it.
func (s *Service) DeleteWorkflow(ctx context.Context, req *hostv1.DeleteWorkflowRequest) (*hostv1.DeleteWorkflowResponse, error) {
	res, err := s.deps.Dispatcher.DeleteWorkflow(ctx, &dispatcherv1.DeleteWorkflowRequest{
		Tenant: auth.From(ctx).Tenant, WorkflowId: req.GetWorkflowId(), Version: req.GetVersion(),
	})
	if err != nil {
		return nil, err
	}
	s.deps.Discovery.Changed()
	err = s.recordAudit(ctx, "workflow.deleted", "workflows/"+req.GetWorkflowId(), map[string]any{"versions": res.GetVersions()})
	return &hostv1.DeleteWorkflowResponse{WorkflowId: req.GetWorkflowId(), Versions: res.GetVersions()}, err
}

// setPutStatus sets the status of a registration: 201 if it created a version, else 200. It
// follows from the response, so a repeated request gets the original status.
func setPutStatus(ctx context.Context, res *hostv1.PutWorkflowResponse) {
	if res.GetCreated() {
		setMeta(ctx, MetaStatus, "201")
	}
}

// Page sizes of lists: default and maximum.
const (
	defaultPage = 50
	maxPage     = 200
)

// pageSize returns the page size of a list.
func pageSize(limit *int32) (int32, error) {
	if limit == nil {
		return defaultPage, nil
	}
	if *limit < 1 || *limit > maxPage {
		return 0, fault.InvalidQuery("limit", "want 1 to %d", maxPage)
	}
	return *limit, nil
}

func errCursor() error {
	return fault.InvalidQuery("cursor", "not a cursor of this host")
}

// ListWorkflows lists definitions by id.
func (s *Service) ListWorkflows(ctx context.Context, req *hostv1.ListWorkflowsRequest) (*hostv1.ListWorkflowsResponse, error) {
	limit, err := pageSize(req.Limit)
	if err != nil {
		return nil, err
	}
	after, err := base64.RawURLEncoding.DecodeString(req.GetCursor())
	if err != nil {
		return nil, errCursor()
	}
	res, err := s.deps.Dispatcher.ListWorkflows(ctx, &dispatcherv1.ListWorkflowsRequest{
		Tenant: auth.From(ctx).Tenant,
		Limit:  limit,
		After:  string(after),
	})
	if err != nil {
		return nil, err
	}
	out := &hostv1.ListWorkflowsResponse{}
	for _, w := range res.GetWorkflows() {
		row := &hostv1.WorkflowSummary{
			WorkflowId: w.GetWorkflowId(), Name: w.GetName(), Version: w.GetVersion(), Digest: w.GetDigest(),
			Warnings: w.GetWarnings(), Versions: w.GetVersions(),
		}
		row.Origin, row.File = origin(w.GetTenant(), w.GetSource())
		out.Workflows = append(out.Workflows, row)
	}
	if res.GetMore() && len(out.GetWorkflows()) > 0 {
		next := base64.RawURLEncoding.EncodeToString([]byte(out.Workflows[len(out.Workflows)-1].GetWorkflowId()))
		out.NextCursor = &next
	}
	return out, nil
}

// origin returns the origin of a workflow, and the name of its file. Callers do not see the operator's
// folder.
func origin(tenant, source string) (name string, file *string) {
	name = "tenant"
	if tenant == "" {
		name = "shared"
	}
	if source != "" {
		file = stringOrNil(path.Base(source))
	}
	return name, file
}

// stringOrNil returns nil for an empty string, so that the member is omitted.
func stringOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

const schemaSuffix = ".schema.json"

// GetEnvelopeSchema returns the schema of an advertised kind. The name is looked up and
// never used as a path.
func (s *Service) GetEnvelopeSchema(ctx context.Context, req *hostv1.GetEnvelopeSchemaRequest) (*hostv1.GetEnvelopeSchemaResponse, error) {
	kind, ok := strings.CutSuffix(req.GetFile(), schemaSuffix)
	if ok {
		res, err := s.deps.Acceptor.ListKinds(ctx, &acceptorv1.ListKindsRequest{})
		if err != nil {
			return nil, err
		}
		for _, k := range res.GetKinds() {
			if k.GetName() == kind {
				setMeta(ctx, MetaCache, publicCache)
				return &hostv1.GetEnvelopeSchemaResponse{Schema: &openwopv1.JsonDocument{Json: k.GetSchema()}}, nil
			}
		}
	}
	return nil, fault.New(fault.NotFound, "no advertised envelope kind has this name; request <kind>%s", schemaSuffix)
}
