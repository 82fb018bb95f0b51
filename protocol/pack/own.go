package pack

import (
	_ "embed"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"sync"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// OwnFile is the name of the file by which a pack speaks to this host alone, beside
// the manifest, which is the protocol's and closed. A pack may be without it.
const OwnFile = "waybill.json"

//go:embed own.schema.json
var ownJSON []byte

// ownSchema is compiled on first use; the document is part of the binary and a test
// compiles it.
var ownSchema = sync.OnceValue(func() *schema.Schema { return embedded(OwnFile, ownJSON) })

// own is what a pack says to this host alone.
type own struct {
	// Kinds are envelope kinds, for which the manifest has no place.
	Kinds []Kind `json:"envelopeKinds"`
	// Prompts are files of prompt templates.
	Prompts []string `json:"prompts"`
	// Nodes tells of what the host makes nodes of the manifest, by typeId.
	Nodes map[string]made `json:"nodes"`
}

// made is a node type made of another one: the base does the work, with the config
// filled in as far as the pack knows it.
type made struct {
	Base   string                     `json:"base"`
	Config map[string]json.RawMessage `json:"config"`
	// ConfigRefs are members of the config that stand in files of the pack.
	ConfigRefs map[string]string `json:"configRefs"`
	// Requires are the ids of what the host's runtime must provide for the node, for
	// which the manifest has no place (OpenWOP host contract §5.7).
	Requires []string `json:"requires"`
}

// Kind is an envelope kind that a pack brings.
type Kind struct {
	Name      string      `json:"kind"`
	Version   json.Number `json:"version"`
	SchemaRef string      `json:"schemaRef"`
}

// version is the kind's version as a number; -1, which no kind has, if it is none.
func (k Kind) version() int {
	if v, ok := integer([]byte(k.Version)); ok {
		return v
	}
	return -1
}

// readOwn reads the pack's file for this host; nil: there is none.
func readOwn(pack fs.FS) (*own, []Problem) {
	if _, err := fs.Stat(pack, OwnFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	o := &own{}
	doc, found := readJSON(pack, OwnFile, "", OwnFile)
	if found != nil {
		return o, found
	}
	found = violations(OwnFile, ownSchema().Validate(doc))
	if err := strictjson.Read(doc, o); err != nil && len(found) == 0 {
		found = append(found, unsound(OwnFile, err))
	}
	return o, found
}

// check finds what no schema can say; of a manifest that cannot be read, nil, nothing is said.
func (o *own) check(m *Manifest) []Problem {
	var out []Problem
	add := func(path, message string) { out = append(out, Problem{OwnFile, path, message}) }
	names := map[string]bool{}
	for i, k := range o.Kinds {
		at := "/envelopeKinds/" + strconv.Itoa(i)
		switch {
		case !VendorKind(k.Name):
			add(at+"/kind", "want a name of the form vendor.<host>.<kind>; other names are the protocol's")
		case names[k.Name]:
			add(at+"/kind", "the pack declares this kind already; a host has one version of a kind")
		}
		names[k.Name] = true
		if _, ok := within(k.SchemaRef); !ok {
			add(at+"/schemaRef", wantPath)
		}
	}
	files := map[string]bool{}
	for i, ref := range o.Prompts {
		at := "/prompts/" + strconv.Itoa(i)
		name, ok := within(ref)
		switch {
		case !ok:
			add(at, wantPath)
		case files[name]:
			add(at, "the pack names this file already; a template is there once")
		}
		files[name] = true
	}
	for _, id := range slices.Sorted(maps.Keys(o.Nodes)) {
		at := "/nodes/" + escape(id)
		if m != nil && !slices.ContainsFunc(m.Nodes, func(n Node) bool { return n.TypeID == id }) {
			add(at, "want the typeId of one of the nodes in "+File)
		}
		for _, name := range slices.Sorted(maps.Keys(o.Nodes[id].ConfigRefs)) {
			ref := at + "/configRefs/" + escape(name)
			if _, ok := within(o.Nodes[id].ConfigRefs[name]); !ok {
				add(ref, wantPath)
			}
			if _, twice := o.Nodes[id].Config[name]; twice {
				add(ref, "the member stands in config as well; keep one of the two")
			}
		}
	}
	return out
}

// wantPath is the remedy for a path that leads out of the pack.
const wantPath = "want a path within the pack, such as schemas/note.json: relative, with / between its parts and no .. among them"
