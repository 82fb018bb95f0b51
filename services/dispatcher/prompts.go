package dispatcher

import (
	"cmp"
	"context"
	"encoding/json"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/clients"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// PromptConfig are the operator's settings of prompt templates.
type PromptConfig struct {
	// Library is nil without templates.
	Library *prompt.Library
	// Observability is how much of a prompt its event contains; empty means digests of prompts from
	// templates only.
	Observability prompt.Observability
}

// openPrompts sets the templates, including those of the test seams if served.
func (s *Service) openPrompts(redactor clients.Redactor) (err error) {
	library, err := s.cfg.Prompts.Library.With() // an own one, which Reload replaces
	if err != nil {
		return err
	}
	s.prompts, err = s.deps.Seams.Prompts(model.Prompts{
		Library:       library,
		Observability: cmp.Or(s.cfg.Prompts.Observability, prompt.Hashed),
		AllCalls:      s.cfg.Prompts.Observability != "",
		Redact:        redactor.Redact,
	})
	return err
}

// promptSupport describes the templates. Secrets are a source only if tenants' keys are supported
// as well.
func (s *Service) promptSupport() *dispatcherv1.PromptSupport {
	out := &dispatcherv1.PromptSupport{
		VariableSources:  []string{string(prompt.FromInput), string(prompt.FromVariable), string(prompt.FromContext)},
		MaxTemplateBytes: prompt.MaxTemplateBytes,
		Observability:    string(s.prompts.Observability),
	}
	if s.deps.Seams.HasSecrets() && len(s.byok()) > 0 {
		out.VariableSources = append(out.VariableSources, string(prompt.FromSecret))
	}
	for _, k := range prompt.Kinds() {
		out.TemplateKinds = append(out.TemplateKinds, string(k))
	}
	return out
}

// ComposePrompt renders a template (OpenWOP envelope contract §23.4).
func (s *Service) ComposePrompt(ctx context.Context, req *dispatcherv1.ComposePromptRequest) (*dispatcherv1.ComposePromptResponse, error) {
	if err := s.deps.Seams.Check(req.GetTenant()); err != nil {
		return nil, err
	}
	level := cmp.Or(prompt.Observability(req.GetObservability()), s.prompts.Observability)
	if level != prompt.Hashed && level != prompt.Full {
		return nil, fault.New(fault.ValidationError, "/observability: want hashed or full; without either there is no event to show")
	}
	t, ferr := s.template(req.GetTemplateId())
	if ferr != nil {
		return nil, ferr
	}
	scope := prompt.Scope{Untrusted: map[string]bool{}}
	if b := req.GetBindings(); len(b) > 0 && strictjson.Read(b, &scope.Values) != nil {
		return nil, fault.New(fault.ValidationError, "/bindings: want an object of values by the names of variables")
	}
	for _, name := range req.GetUntrusted() {
		scope.Untrusted[name] = true
	}
	c, ferr := prompt.Compose([]prompt.Part{{Template: t}}, prompt.Bindings{
		Input:    scope,
		Variable: scope,
		Context:  scope,
		Secret:   s.prompts.Secret,
	})
	if ferr != nil {
		return nil, ferr
	}
	if err := c.Redact(func(doc []byte) ([]byte, error) {
		out, _, err := s.prompts.Redact(ctx, req.GetTenant(), "", false, [][]byte{doc})
		if err != nil {
			return nil, err
		}
		return out[0], nil
	}); err != nil {
		return nil, redactorFault(err)
	}
	payload, err := json.Marshal(c.Payload(req.GetNodeId(), level))
	return &dispatcherv1.ComposePromptResponse{Payload: payload}, err
}

// template returns a template by id or reference.
func (s *Service) template(id string) (*prompt.Template, *fault.Error) {
	r, wrong := prompt.ParseName(id)
	if wrong != nil {
		return nil, fault.New(fault.TemplateNotFound, "/templateId: this host has no template of that name")
	}
	return s.prompts.Library.Find(r)
}
