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

// PrepareReload prepares the node types of packs and the prompt templates, for development. apply replaces
// the present ones; before, and after an error, nothing has changed. A run uses the new ones from its next
// step on, as after a restart. The packs were loaded for the host's types.
func (s *Service) PrepareReload(packs []*pack.Pack, library *prompt.Library) (apply func(), err error) {
	prompts, err := s.deps.Seams.Prompts(model.Prompts{Library: library})
	if err != nil {
		return nil, err
	}
	types := s.typesWith(packs)
	return func() {
		s.types.Set(types)
		s.prompts.Library.Replace(prompts.Library)
		s.schemas.Forget()
	}, nil
}
