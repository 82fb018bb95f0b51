package node

import (
	"embed"
	"io/fs"
	"maps"
	"sync"

	"waybill.dev/waybill/protocol/pack"
)

// The pack of the nodes that ask models ships with the host, as data like any other:
// only the work is the host's.
//
//go:embed coreai
var coreAI embed.FS

// work is what the host does for the pack's nodes.
var work = map[string]Type{
	TypeCallPrompt:       {Class: Effect, EmitsEnvelopes: true},
	TypeStructuredOutput: {Class: Effect, EmitsEnvelopes: true},
}

// AsksModel reports whether nodes of the type ask a model.
func (t Type) AsksModel() bool {
	_, ok := work[t.Executes()]
	return ok
}

// coreTypes are read once; the pack is part of the binary and a test reads it.
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
		t := work[n.TypeID]
		t.ID, t.Source = n.TypeID, source(packs[0])
		t.Made = &Made{Base: n.TypeID, config: n.Config}
		c[t.ID] = t
	}
	return c
})

// models are the types that ask models.
func models() Catalog { return maps.Clone(coreTypes()) }
