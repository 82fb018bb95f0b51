package dispatcher

import (
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// typesWith returns the node types of the host and of packs.
func (s *Service) typesWith(packs []*pack.Pack) node.Catalog {
	return s.deps.Seams.Types(node.Builtin().And(s.deps.Tools.Types()...)).With(packs)
}

// Reload replaces the node types of packs and the prompt templates, for development. A run uses the new
// ones from its next step on, as after a restart. The packs were loaded for the host's types. After an
// error nothing has changed.
func (s *Service) Reload(packs []*pack.Pack, library *prompt.Library) error {
	prompts, err := s.deps.Seams.Prompts(model.Prompts{Library: library})
	if err != nil {
		return err
	}
	s.types.Set(s.typesWith(packs))
	s.prompts.Library.Replace(prompts.Library)
	s.schemas.Forget()
	return nil
}
