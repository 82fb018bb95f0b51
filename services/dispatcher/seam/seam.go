// Package seam is the dispatcher's part of the protocol's test seams: scripted and canned providers,
// and the node types, templates and secrets of the protocol's tests. They are enabled with
// --test-seams only (OpenWOP envelope contract §23).
//
// The nil *Seams disables all of it: its methods return what production uses.
package seam

import (
	"encoding/json"
	"fmt"
	"maps"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// Seams are the test seams of a dispatcher; nil without them.
type Seams struct {
	// Scripts are the scripts of the mock provider; nil disables scripting.
	Scripts mock.Scripts
	// Secrets are the only secrets that templates and nodes can read, by id. They must be
	// registered with the redactor.
	Secrets map[string]string
}

// Types adds the node types of the protocol's tests.
func (s *Seams) Types(types node.Catalog) node.Catalog {
	if s == nil {
		return types
	}
	return types.Conformance(s.Secrets)
}

// Runners adds the runners of the node types that have a side effect, or compose prompts.
func (s *Seams) Runners(runners tool.Runners, prompts model.Prompts) tool.Runners {
	if s == nil {
		return runners
	}
	out := tool.Runners{node.TypeSideEffect: sideEffect{}, node.TypeMockAI: mockAI{prompts}}
	maps.Copy(out, runners)
	return out
}

// Prompts adds the templates of the protocol's tests and the secrets that they read.
func (s *Seams) Prompts(p model.Prompts) (model.Prompts, error) {
	if s == nil {
		return p, nil
	}
	var err error
	p.Library, err = p.Library.With(prompt.Conformance()...)
	p.Secret = func(id string) (string, bool) {
		value, ok := s.Secrets[id]
		return value, ok
	}
	return p, err
}

// HasSecrets reports that templates can read secrets.
func (s *Seams) HasSecrets() bool { return s != nil && len(s.Secrets) > 0 }

// MockProviders returns the ids of configurable.mockProvider; nil without test seams.
func (s *Seams) MockProviders() []string {
	if s == nil {
		return nil
	}
	return mock.CannedIDs()
}

// Canned returns the constructor of configurable.mockProvider's providers; nil without test seams.
func (s *Seams) Canned() func(spec json.RawMessage) (provider.Provider, error) {
	if s == nil {
		return nil
	}
	return func(spec json.RawMessage) (provider.Provider, error) {
		var m struct {
			ID     string          `json:"id"`
			Config json.RawMessage `json:"config"`
		}
		if err := strictjson.Read(spec, &m); err != nil {
			return nil, fmt.Errorf("want {id, config?}: %w", err)
		}
		return mock.Canned(m.ID, m.Config)
	}
}
