package node

import (
	"embed"
	"encoding/json"
	"io/fs"
	"maps"
	"sync"

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// The pack of the model nodes ships with the host as data like any other pack. Only the execution
// is the host's.
//
//go:embed coreai
var coreAI embed.FS

// modelTypes are the host's implementations of the pack's nodes.
var modelTypes = map[string]Type{
	TypeCallPrompt:       {Class: Effect, EmitsEnvelopes: true, Outputs: []string{"output", "envelopes", "error"}},
	TypeStructuredOutput: {Class: Effect, EmitsEnvelopes: true, Outputs: []string{"output"}},
}

// AsksModel reports whether nodes of the type call a model.
func (t Type) AsksModel() bool {
	_, ok := modelTypes[t.Executes()]
	return ok
}

// coreTypes are loaded once. The pack is part of the binary and a test loads it.
var coreTypes = sync.OnceValue(func() Catalog {
	files, err := fs.Sub(coreAI, "coreai")
	if err != nil {
		panic("node: the pack of the host: " + err.Error())
	}
	packs, _, err := pack.Load([]pack.Source{{Folder: "core.ai", FS: files}}, pack.Host{Any: true})
	if err != nil {
		panic("node: the pack of the host: " + err.Error())
	}
	c := Catalog{}
	for _, n := range packs[0].Nodes {
		t := modelTypes[n.TypeID]
		t.ID, t.Source = n.TypeID, packSource(packs[0])
		t.schema = n.Config
		t.Lint, t.Check = lintContract, checkContract
		c[t.ID] = t
	}
	return c
})

// lintContract checks the envelope contract in the config of a model node.
func lintContract(config json.RawMessage) []workflow.Problem {
	cfg, err := configMembers(config)
	raw := cfg["envelopeContract"]
	if err != nil || len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	asked, _ := strictjson.String(cfg["envelopeType"])
	found, refuses := workflow.CheckContract(raw, asked)
	for i := range found {
		found[i].Path = "/envelopeContract" + found[i].Path
	}
	if refuses {
		found = append(found, workflow.Problem{Path: "/envelopeType", Rule: workflow.RuleContract, Message: workflow.ContractRefuses})
	}
	return found
}

// checkContract rejects a run of a definition that was registered before contracts in configs were checked.
func checkContract(config json.RawMessage) *wire.NodeError {
	if wrong := lintContract(config); len(wrong) > 0 {
		return Invalid("/config%s: %s", wrong[0].Path, wrong[0].Message)
	}
	return nil
}

// modelCatalog returns the types that call models.
func modelCatalog() Catalog { return maps.Clone(coreTypes()) }
