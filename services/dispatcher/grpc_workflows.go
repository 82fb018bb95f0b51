package dispatcher

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/lint"
)

// PutWorkflow registers a definition.
func (s *Service) PutWorkflow(ctx context.Context, req *dispatcherv1.PutWorkflowRequest) (*dispatcherv1.PutWorkflowResponse, error) {
	report := s.lintHost(ctx).Check(req.GetDefinition())
	switch lacks, err := s.lacksSwitched(ctx, req.GetTenant(), report.Def); {
	case err != nil:
		return nil, err
	case lacks != nil && req.GetValidateOnly():
		report.Problems = append(report.Problems, lacks.problem())
	case lacks != nil:
		return nil, lacks.fault()
	}
	if req.GetValidateOnly() {
		return s.validation(ctx, req.GetTenant(), report)
	}
	if problems := report.Problems; len(problems) > 0 {
		first := problems[0]
		if first.Path == "" {
			first.Path = "the document"
		}
		return nil, fault.New(fault.ValidationError, "the definition has %d problem(s); the first: %s: %s", len(problems), first.Path, first.Message).
			With("problems", workflow.AsDetails(problems))
	}
	def := report.Def
	if def.TenantID != "" && req.GetTenant() != "" && def.TenantID != req.GetTenant() {
		return nil, fault.New(fault.Forbidden, "/tenantId names another tenant than the credential's")
	}
	if req.GetRequireExecutable() {
		if err := s.starter.CheckExecutable(def); err != nil {
			return nil, err
		}
	}
	if err := s.checkSecrets(ctx, req.GetTenant(), def.Raw); err != nil {
		return nil, err
	}
	ref, change, err := s.definitions.Put(ctx, req.GetTenant(), def, req.GetReplace())
	if err != nil {
		return nil, err
	}
	found := slices.Concat(report.Warnings, s.registryWarnings(ctx, req.GetTenant(), def))
	out := &dispatcherv1.PutWorkflowResponse{
		WorkflowId: ref.ID, Version: ref.Version, Digest: ref.Digest, UnknownTypes: s.unknownTypes(ref.Types),
		Unchanged: change == definition.Unchanged, Created: change == definition.Created,
		Warnings: warnings(found),
	}
	if req.GetTenant() == "" {
		out.HiddenFrom = s.definitions.HiddenFrom(ref.ID)
		err = s.definitions.SetSource(ctx, ref, req.GetSource())
	}
	return out, err
}

// validation returns the result of a check.
func (s *Service) validation(ctx context.Context, tenant string, r lint.Report) (*dispatcherv1.PutWorkflowResponse, error) {
	out := &dispatcherv1.PutWorkflowResponse{Problems: warnings(r.Problems), Warnings: warnings(r.Warnings)}
	if r.Def == nil {
		return out, nil
	}
	out.WorkflowId, out.Version, out.Digest = r.Def.ID, r.Def.Version, r.Def.Digest()
	out.Warnings = append(out.Warnings, warnings(s.registryWarnings(ctx, tenant, r.Def))...)
	err := s.checkSecrets(ctx, tenant, r.Def.Raw)
	if f, isFault := fault.As(err); isFault && f.Code != fault.ServiceUnavailable {
		out.Problems = append(out.Problems, warnings(definition.SecretProblems(f))...)
		err = nil
	}
	return out, err
}

// registryWarnings returns the warnings that need the registered workflows.
func (s *Service) registryWarnings(ctx context.Context, tenant string, def *workflow.Definition) []workflow.Problem {
	out := append(s.unknownChildren(ctx, tenant, def), s.unmaskable(def)...)
	if shared, ok := s.definitions.Shared(def.ID); ok && tenant != "" && shared.Digest != def.Digest() {
		out = append(out, workflow.Problem{Path: "/id", Rule: ruleHides, Message: hides(shared)})
	}
	return out
}

// ruleHides is the rule of a tenant's definition with the id of a shared one.
const ruleHides = "hides"

// hides describes what a tenant's own workflow hides.
func hides(shared definition.Ref) string {
	from := ""
	if shared.Source != "" {
		from = " of the file " + path.Base(shared.Source)
	}
	return fmt.Sprintf("your tenant's own workflow hides version %s%s, which all tenants share; delete your own to use it", shared.Version, from)
}

// warnings converts the warnings of a definition.
func warnings(found []workflow.Problem) []*dispatcherv1.WorkflowWarning {
	out := make([]*dispatcherv1.WorkflowWarning, len(found))
	for i, p := range found {
		out[i] = &dispatcherv1.WorkflowWarning{Path: p.Path, Rule: p.Rule, Message: p.Message}
	}
	return out
}

// sharedScope is the redactor's scope of a definition without a tenant. It is not a valid tenant
// name.
const sharedScope = "="

// checkSecrets rejects a definition that the redactor would change.
func (s *Service) checkSecrets(ctx context.Context, tenant string, raw []byte) error {
	if tenant == "" {
		tenant = sharedScope
	}
	raw = s.deps.Seams.WithoutPlantedSecret(raw)
	clean, changed, err := s.redactor.Redact(ctx, tenant, "", false, [][]byte{raw})
	switch {
	case err != nil:
		return redactorFault(err)
	case changed:
		return definition.NewSecretFault(raw, clean[0])
	default:
		return nil
	}
}

func (s *Service) unknownTypes(types []string) []string {
	var out []string
	for _, t := range types {
		if _, ok := s.types.Current()[t]; !ok {
			out = append(out, t)
		}
	}
	return out
}

// GetWorkflow returns a definition.
func (s *Service) GetWorkflow(ctx context.Context, req *dispatcherv1.GetWorkflowRequest) (*dispatcherv1.GetWorkflowResponse, error) {
	e, err := s.definitions.GetVersion(ctx, req.GetTenant(), req.GetWorkflowId(), req.GetVersion())
	if err != nil {
		return nil, err
	}
	return &dispatcherv1.GetWorkflowResponse{Definition: e.Def.Raw, Version: e.Def.Version, Digest: e.Digest}, nil
}

// ListWorkflows lists definitions by id.
func (s *Service) ListWorkflows(ctx context.Context, req *dispatcherv1.ListWorkflowsRequest) (*dispatcherv1.ListWorkflowsResponse, error) {
	refs, more := s.definitions.List(req.GetTenant(), req.GetAfter(), int(req.GetLimit()))
	out := &dispatcherv1.ListWorkflowsResponse{More: more}
	for _, r := range refs {
		ok, err := s.executable(ctx, r)
		found := s.listWarnings(r)
		if fault.CodeOf(err) == fault.LogDamaged { // the others are listed
			found, err = append(found, err.Error()), nil
		}
		if err != nil {
			return nil, err
		}
		out.Workflows = append(out.Workflows, &dispatcherv1.WorkflowSummary{
			WorkflowId: r.ID, Name: r.Name, Version: r.Version, Digest: r.Digest, Executable: ok,
			Tenant: r.Tenant, Source: r.Source, Warnings: found,
			Versions: int32(len(r.Versions)), //nolint:gosec // G115: far below 2^31
		})
	}
	return out, nil
}

// listWarnings returns what is probably wrong with a registered workflow.
func (s *Service) listWarnings(r definition.Ref) []string {
	if r.Tenant == "" {
		return s.fileNotes.of(r.ID)
	}
	if shared, ok := s.definitions.Shared(r.ID); ok && shared.Digest != r.Digest {
		return []string{hides(shared)}
	}
	return nil
}

// fileNotes are what is probably wrong with the files of the folders of workflows, by workflow.
type fileNotes struct {
	mu   sync.Mutex // guards byID
	byID map[string][]string
}

func (n *fileNotes) of(id string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.byID[id])
}

// SetFileNotes replaces the notes on the files of the folders of workflows, which lists of workflows
// show.
func (s *Service) SetFileNotes(byID map[string][]string) {
	s.fileNotes.mu.Lock()
	defer s.fileNotes.mu.Unlock()
	s.fileNotes.byID = byID
}

// executable reports that the host executes a workflow, and leaves out nothing that it asks for.
func (s *Service) executable(ctx context.Context, r definition.Ref) (bool, error) {
	if len(s.unknownTypes(r.Types)) > 0 {
		return false, nil
	}
	e, err := s.definitions.ByDigest(ctx, r.Digest)
	if err != nil {
		return false, err
	}
	complete := len(lint.Lacking(e.Def, s.types.Current())) == 0 && s.meetsRequirements(e.Def)
	return complete && s.starter.CheckExecutable(e.Def) == nil, nil
}

// ListWorkflowVersions lists the versions of a workflow.
func (s *Service) ListWorkflowVersions(ctx context.Context, req *dispatcherv1.ListWorkflowVersionsRequest) (*dispatcherv1.ListWorkflowVersionsResponse, error) {
	ref, err := s.definitions.Find(ctx, req.GetTenant(), req.GetWorkflowId())
	if err != nil {
		return nil, err
	}
	out := &dispatcherv1.ListWorkflowVersionsResponse{Tenant: ref.Tenant, Source: ref.Source, Warnings: s.listWarnings(ref)}
	for _, v := range ref.SortedVersions() {
		out.Versions = append(out.Versions, &dispatcherv1.WorkflowVersion{Version: v, Digest: ref.Versions[v], Current: v == ref.Version})
	}
	return out, nil
}

// DeleteWorkflow deletes a workflow, or one version of it.
func (s *Service) DeleteWorkflow(ctx context.Context, req *dispatcherv1.DeleteWorkflowRequest) (*dispatcherv1.DeleteWorkflowResponse, error) {
	deleted, err := s.definitions.Delete(ctx, req.GetTenant(), req.GetWorkflowId(), req.GetVersion())
	return &dispatcherv1.DeleteWorkflowResponse{Versions: deleted}, err
}
