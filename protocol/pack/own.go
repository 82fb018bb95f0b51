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

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// OwnFile is the pack's optional file for this host only, next to the manifest, which is defined by
// the protocol and closed.
const OwnFile = "waybill.json"

//go:embed own.schema.json
var ownJSON []byte

// ownSchema is compiled on first use; a test covers the embedded document.
var ownSchema = sync.OnceValue(func() *schema.Schema { return embedded(OwnFile, ownJSON) })

// own is the content of OwnFile.
type own struct {
	// Kinds are envelope kinds; the manifest has no member for them.
	Kinds []Kind `json:"envelopeKinds"`
	// Prompts are files of prompt templates.
	Prompts []string `json:"prompts"`
	// Nodes defines the implementation of nodes in the manifest, by typeId.
	Nodes map[string]made `json:"nodes"`
}

// made implements a node type by another one: the base executes it, with the config members that
// the
// pack sets.
type made struct {
	Base   string                     `json:"base"`
	Config map[string]json.RawMessage `json:"config"`
	// ConfigRefs are config members stored in files of the pack.
	ConfigRefs map[string]string `json:"configRefs"`
	// Requires are the ids of capabilities that the host's runtime must provide for the node; the
	// manifest has no member for them (OpenWOP host contract §5.7).
	Requires []string `json:"requires"`
}

// Kind is an envelope kind in a pack.
type Kind struct {
	Name      string      `json:"kind"`
	Version   json.Number `json:"version"`
	SchemaRef string      `json:"schemaRef"`
}

// version returns the kind's version as a number; -1 if it is invalid.
func (k Kind) version() int {
	if v, ok := integer([]byte(k.Version)); ok {
		return v
	}
	return -1
}

// readOwn reads the pack's file for this host; nil if there is none.
func readOwn(pack fs.FS) (*own, []Problem) {
	if _, err := fs.Stat(pack, OwnFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	o := &own{}
	doc, found := readJSON(pack, OwnFile, "", OwnFile)
	if found != nil {
		return o, found
	}
	found = violations(OwnFile, ownSchema(), doc)
	if err := strictjson.Read(doc, o); err != nil && len(found) == 0 {
		found = append(found, unsound(OwnFile, err))
	}
	return o, found
}

// check applies the rules that a schema cannot express. With an unreadable manifest (nil) it skips
// the
// checks against it.
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
			add(at+"/kind", "the pack already declares this kind; a kind has one version per host")
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
			add(at, "the pack already lists this file; list each template once")
		}
		files[name] = true
	}
	for _, id := range slices.Sorted(maps.Keys(o.Nodes)) {
		at := "/nodes/" + jsonpointer.Escape(id)
		if m != nil && !slices.ContainsFunc(m.Nodes, func(n Node) bool { return n.TypeID == id }) {
			add(at, "want the typeId of one of the nodes in "+File)
		}
		for _, name := range slices.Sorted(maps.Keys(o.Nodes[id].ConfigRefs)) {
			ref := at + "/configRefs/" + jsonpointer.Escape(name)
			if _, ok := within(o.Nodes[id].ConfigRefs[name]); !ok {
				add(ref, wantPath)
			}
			if _, twice := o.Nodes[id].Config[name]; twice {
				add(ref, "the member is also set in config; keep one of the two")
			}
		}
	}
	return out
}

// wantPath is the remedy for a path outside the pack.
const wantPath = "want a path within the pack, such as schemas/note.json: relative, with / between its parts and no .. among them"

// ManifestSchema is the schema of the manifest.
func ManifestSchema() []byte { return manifestJSON }

// OwnSchema is the schema of OwnFile.
func OwnSchema() []byte { return ownJSON }

// ContractSchema is the schema of an envelope contract.
func ContractSchema() []byte { return contractJSON }
