package create

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/credential"
)

// checkTypes rejects a workflow that this host cannot execute.
func (s *Starter) checkTypes(def *workflow.Definition) error {
	for i, n := range def.Nodes {
		t, ok := node.CurrentOf(s.deps.Types)[n.TypeID]
		if !ok {
			return fault.New(fault.CapabilityRequired, "node %q is of type %q, which this host does not provide", n.ID, n.TypeID).
				With("requiredCapability", n.TypeID).With("offendingTypeId", n.TypeID).With("nodeId", n.ID)
		}
		if t.EmitsEnvelopes && s.deps.NoAIEnvelope {
			return fault.New(fault.CapabilityRequired, "node %q is of type %q, which needs %s, and this host has switched that off", n.ID, n.TypeID, node.CapabilityEnvelopes).
				With("requiredCapability", node.CapabilityEnvelopes).With("offendingTypeId", n.TypeID).With("nodeId", n.ID)
		}
		if wrong := t.CheckConfig(n.Config); len(wrong) > 0 {
			for k := range wrong {
				wrong[k].Path = fmt.Sprintf("/nodes/%d/config%s", i, wrong[k].Path)
			}
			return invalid(fmt.Sprintf("the config of node %q does not fit its type %s", n.ID, n.TypeID), wrong)
		}
		if t.Check != nil {
			if bad := t.Check(t.Configure(n.Config)); bad != nil {
				return invalidNode(i, n.ID, bad)
			}
		}
		if err := checkSelfReference(def, n, t); err != nil {
			return err
		}
		if s.deps.CheckModel != nil {
			if bad := s.deps.CheckModel(t.Executes(), t.Configure(n.Config)); bad != nil {
				return invalidNode(i, n.ID, bad)
			}
		}
		if err := s.checkPrompts(n.ID, "/nodes/"+strconv.Itoa(i)+"/config", t, n.Config); err != nil {
			return err
		}
	}
	return nil
}

// CheckExecutable reports whether runs of a definition can be created on this host.
func (s *Starter) CheckExecutable(def *workflow.Definition) error {
	if err := s.checkTypes(def); err != nil {
		return err
	}
	return s.CheckMaskable(def)
}

// aiOverlay are the keys of configurable that are checked at creation.
type aiOverlay struct {
	Provider      string          `json:"ai.provider"`
	CredentialRef string          `json:"ai.credentialRef"`
	Mock          json.RawMessage `json:"mockProvider"`
	AI            struct {
		Provider      string `json:"provider"`
		CredentialRef string `json:"credentialRef"`
	} `json:"ai"`
}

// checkConfigurable checks configurable and returns the name of the tenant's own key; empty means
// none.
func (s *Starter) checkConfigurable(req Request, def *workflow.Definition) (ref string, err error) {
	if ps := def.CheckConfigurable(req.Configurable); len(ps) > 0 {
		return "", invalid("configurable does not fit the workflow's configurableSchema", ps)
	}
	return s.checkOverlay(req)
}

// checkOverlay checks the members of configurable that the host defines.
func (s *Starter) checkOverlay(req Request) (ref string, err error) {
	if len(req.Configurable) == 0 {
		return "", nil
	}
	var o aiOverlay
	if err := strictjson.Read(req.Configurable, &o); err != nil {
		return "", fault.InvalidBody("/configurable", "a reserved key has the wrong type")
	}
	if err := s.checkMock(req, o); err != nil {
		return "", err
	}
	p := o.Provider
	if p == "" {
		p = o.AI.Provider
	}
	if p != "" && !slices.Contains(s.deps.Providers, p) {
		return "", fault.InvalidBody("/configurable/ai.provider", "this host has no provider of that id; it has %v", s.deps.Providers)
	}
	if ref, err = s.checkCredential(p, o); err != nil || p == "" {
		return ref, err
	}
	return ref, s.checkPolicy(req, ref)
}

// checkPolicy rejects a run whose configurable names a forbidden provider. The models of its nodes
// are checked when the nodes start (OpenWOP host contract §5.8).
func (s *Starter) checkPolicy(req Request, ref string) error {
	if s.deps.Policy == nil {
		return nil
	}
	rec := &wire.RunRecord{Owner: wire.Owner{Tenant: req.Tenant}, CredentialRef: ref}
	bad := s.deps.Policy(rec, node.Input{Configurable: req.Configurable})
	if bad == nil || bad.Details["model"] != nil {
		return nil
	}
	return fault.New(fault.Code(bad.Code), "/configurable/ai.provider: %s", bad.Message).
		With("path", "/configurable/ai.provider").With("provider", bad.Details["provider"]).With("reason", bad.Details["reason"])
}

const refPath = "/configurable/ai.credentialRef"

// checkCredential checks the name of the tenant's own key. The key itself is looked up when it is
// needed.
func (s *Starter) checkCredential(provider string, o aiOverlay) (string, error) {
	ref := o.CredentialRef
	if ref == "" {
		ref = o.AI.CredentialRef
	}
	if provider == "" {
		provider = s.deps.DefaultProvider
	}
	switch {
	case ref == "":
		return "", nil
	case !slices.Contains(s.deps.BYOK, provider):
		return "", fault.New(fault.CredentialForbidden, "%s: provider %q takes no caller's own credential here; these do: %v", refPath, provider, s.deps.BYOK).
			With("path", refPath).With("provider", provider)
	case !credential.ValidRef(ref):
		return "", fault.InvalidBody(refPath, "want the name of a credential: letters, digits, dots, dashes and underscores, at most 63")
	}
	return ref, nil
}

// checkMock allows a scripted provider for test keys only.
func (s *Starter) checkMock(req Request, o aiOverlay) error {
	if len(o.Mock) == 0 {
		return nil
	}
	var m struct {
		ID string `json:"id"`
	}
	if err := strictjson.Read(o.Mock, &m); err != nil || m.ID == "" {
		return fault.InvalidBody("/configurable/mockProvider/id", "want a string of 1 to 128 characters")
	}
	if !req.TestKey || len(s.deps.MockProviders) == 0 {
		return fault.New(fault.MockProviderForbidden, "mockProvider needs a test key on a host that serves test seams").
			With("requestedProvider", m.ID).With("supportedProviders", s.deps.MockProviders)
	}
	if !slices.Contains(s.deps.MockProviders, m.ID) {
		return fault.New(fault.UnsupportedMockProvider, "no mock provider of that id").
			With("requestedProvider", m.ID).With("supportedProviders", s.deps.MockProviders)
	}
	return nil
}

// invalidNode is the error of a node whose config has a problem that its schema does not show.
func invalidNode(i int, id string, bad *wire.NodeError) error {
	at := fmt.Sprintf("/nodes/%d/config", i)
	e := fault.New(fault.Code(bad.Code), "node %q, %s", id, bad.Message).With("nodeId", id)
	if e.Code != fault.ValidationError {
		return e.With("path", at)
	}
	return e.With("problems", []fault.Problem{{Path: at, Message: bad.Message}})
}

// invalid is a validation_error that lists every problem.
func invalid(what string, ps []workflow.Problem) error {
	return fault.New(fault.ValidationError, "%s: %s: %s", what, ps[0].Path, ps[0].Message).With("problems", workflow.AsDetails(ps))
}
