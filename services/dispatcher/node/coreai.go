package node

import (
	"embed"
	"io/fs"
	"maps"
	"sync"

	"waybill.dev/waybill/protocol/pack"
)

// The pack of the model nodes ships with the host as data like any other pack. Only the execution
// is the host's.
//
//go:embed coreai
var coreAI embed.FS

// modelTypes are the host's implementations of the pack's nodes.
var modelTypes = map[string]Type{
	TypeCallPrompt:       {Class: Effect, EmitsEnvelopes: true, Outputs: []string{"output", "envelopes"}},
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
		c[t.ID] = t
	}
	return c
})

// modelCatalog returns the types that call models.
func modelCatalog() Catalog { return maps.Clone(coreTypes()) }
