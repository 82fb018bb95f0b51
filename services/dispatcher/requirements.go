package dispatcher

import (
	"slices"

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// requirements are the members of metadata in which the protocol's fixtures name what a host must
// have. This host has no agents.
type requirements struct {
	Capability     string `json:"requiresCapability"`
	Pack           string `json:"requiresInstalledPack"`
	Agent          string `json:"requiresAgentId"`
	WorkspaceAgent string `json:"requiresWorkspaceAgent"`
}

// meetsRequirements reports that the host has what a fixture requires. Other workflows require nothing
// by metadata.
func (s *Service) meetsRequirements(def *workflow.Definition) bool {
	if s.deps.Seams == nil {
		return true
	}
	var doc struct {
		Metadata requirements `json:"metadata"`
	}
	if strictjson.Read(def.Raw, &doc) != nil {
		return false // a member is not a text
	}
	r := doc.Metadata
	_, spawns := s.types.Current()[node.TypeSubWorkflow]
	installed := slices.ContainsFunc(s.cfg.Packs, func(p *pack.Pack) bool { return p.Name == r.Pack && len(p.Agents) == 0 })
	return r.Agent == "" && r.WorkspaceAgent == "" && (r.Pack == "" || installed) &&
		(r.Capability == "" || r.Capability == "capabilities."+capInputMapping && spawns)
}
