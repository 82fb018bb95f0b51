package pack

import (
	_ "embed"
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// File is the name of the manifest in a pack's folder.
const File = "pack.json"

// maxManifest bounds the manifest, in bytes and in levels.
const (
	maxManifest      = 256 << 10
	maxManifestDepth = 32
)

//go:embed manifest.schema.json
var manifestJSON []byte

// manifestSchema is compiled on first use; the document is part of the binary and
// a test compiles it.
var manifestSchema = sync.OnceValue(func() *schema.Schema { return embedded("pack manifest", manifestJSON) })

// besideOwn is the manifest's schema where the pack has a file for this host: what
// that brings needs neither nodes nor a runtime.
var besideOwn = sync.OnceValue(func() *schema.Schema {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(manifestJSON, &doc); err != nil {
		panic("pack: embedded manifest schema: " + err.Error())
	}
	delete(doc, "anyOf")
	doc["required"] = json.RawMessage(`["name","version","engines"]`)
	relaxed, err := json.Marshal(doc)
	if err != nil {
		panic("pack: embedded manifest schema: " + err.Error())
	}
	return embedded("pack manifest beside "+OwnFile, relaxed)
})

// embedded compiles a schema that is part of the binary.
func embedded(name string, doc []byte) *schema.Schema {
	s, err := schema.Compile(name, doc)
	if err != nil {
		panic("pack: " + name + ": " + err.Error())
	}
	return s
}

// Manifest is what a pack says about itself, as far as this host reads it.
type Manifest struct {
	Name    string  `json:"name"`
	Version string  `json:"version"`
	Nodes   []Node  `json:"nodes"`
	Agents  []Agent `json:"agents"`
	Engines struct {
		OpenWOP string `json:"openwop"`
	} `json:"engines"`
	Runtime struct {
		Language string `json:"language"`
		Entry    string `json:"entry"`
	} `json:"runtime"`
	// Dependencies are other packs and the versions of them that will do.
	Dependencies map[string]string `json:"dependencies"`
	// PeerDependencies are capabilities of the host: text, or for aiProviders an
	// object.
	PeerDependencies map[string]json.RawMessage `json:"peerDependencies"`
	PeerMeta         map[string]struct {
		Optional bool `json:"optional"`
	} `json:"peerDependenciesMeta"`
	Connector struct {
		Actions []struct {
			TypeID string `json:"typeId"`
		} `json:"actions"`
		Triggers []string `json:"triggers"`
	} `json:"connector"`
	Signing *struct {
		PublicKeyRef string `json:"publicKeyRef"`
		SignatureRef string `json:"signatureRef"`
	} `json:"signing"`
}

// SchemaVersion is the x-schemaVersion of a kind's schema, if it tells one. The
// error says that the document is no JSON object, or that member no version.
func SchemaVersion(doc []byte) (version int, told bool, err error) {
	var head struct {
		Version json.RawMessage `json:"x-schemaVersion"`
	}
	switch err := strictjson.Read(doc, &head); {
	case errors.As(err, new(*strictjson.Error)):
		return 0, false, err
	case err != nil:
		return 0, false, errors.New("want a JSON object, the schema")
	case head.Version == nil:
		return 0, false, nil
	}
	version, ok := integer(head.Version)
	if !ok {
		return 0, true, errors.New("want an integer of 0 or more for x-schemaVersion, or no such member")
	}
	return version, true, nil
}

// integer reads a version: 2.0 is the integer 2, as everywhere in JSON Schema, and
// "2" is none.
func integer(number []byte) (int, bool) {
	if len(number) == 0 || number[0] < '0' || number[0] > '9' {
		return 0, false
	}
	v, ok := new(big.Rat).SetString(string(number))
	if !ok || !v.IsInt() || v.Num().BitLen() > 31 {
		return 0, false
	}
	return int(v.Num().Int64()), true
}

// Node is a node type that a pack brings.
type Node struct {
	TypeID              string `json:"typeId"`
	Version             string `json:"version"`
	EnvelopeContractRef string `json:"envelopeContractRef"`
	ConfigSchemaRef     string `json:"configSchemaRef"`
	InputSchemaRef      string `json:"inputSchemaRef"`
	OutputSchemaRef     string `json:"outputSchemaRef"`
	// RequiresSecrets are those that the host has to have for it.
	RequiresSecrets []Secret `json:"requiresSecrets"`
	// Outputs are the ports that say something of themselves.
	Outputs map[string]struct {
		Sensitive bool `json:"sensitive"`
	} `json:"outputs"`
	// RequiredCredentials and Auth are families that this host does not have.
	RequiredCredentials []json.RawMessage `json:"requiredCredentials"`
	Auth                json.RawMessage   `json:"auth"`
	modelgate.Needs
}

// Secret is a secret that a node needs (OpenWOP host contract §5.7).
type Secret struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Provider string `json:"provider"`
	Scope    string `json:"scope"`
}

// Agent is an agent that a pack brings.
type Agent struct {
	ID string `json:"agentId"`
}

// Problem is one thing that is wrong with a file of a pack.
type Problem struct {
	// File is the file's path within the pack.
	File string
	// Path is a JSON pointer into the file; empty for the whole.
	Path string
	// Message says what would be right.
	Message string
}

// vendorKind is the form of a vendor's kind: vendor.<host>.<kind>.
var vendorKind = regexp.MustCompile(`^vendor\.[a-z][a-z0-9-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)+$`)

// maxKind bounds the name of a kind, in characters.
const maxKind = 256

// VendorKind reports whether a kind may be registered under the name. Other names
// are the protocol's, and new ones need an RFC (OpenWOP envelope contract §3.1).
func VendorKind(name string) bool { return len(name) <= maxKind && vendorKind.MatchString(name) }

// parse reads a manifest; owned says that a file for this host stands beside it.
// Paths are checked for their form; whether there is a file is found out later. Of a manifest
// with problems comes what can be read, so that all else that is wrong is told with them;
// nil: it is not JSON, or another family's.
func parse(doc []byte, owned bool) (*Manifest, []Problem) {
	if err := strictjson.Check(doc, strictjson.Limits{MaxBytes: maxManifest, MaxDepth: maxManifestDepth}); err != nil {
		return nil, []Problem{unsound(File, err)}
	}
	if kind := packKind(doc); kind != "" && kind != "node" {
		return nil, []Problem{{File, "/kind", "this host loads packs of kind node only, and leaves the member out for those"}}
	}
	rules := manifestSchema
	if owned {
		rules = besideOwn
	}
	found := violations(File, rules().Validate(doc))
	m := &Manifest{}
	if err := strictjson.Read(doc, m); err != nil && len(found) == 0 {
		found = append(found, unsound(File, err))
	}
	return m, append(found, m.check()...)
}

// packKind is the family of the pack, if it says one: other families have other
// manifests, about which violations of this one would say nothing useful.
func packKind(doc []byte) string {
	var head struct {
		Kind json.RawMessage `json:"kind"`
	}
	var kind string
	if strictjson.Read(doc, &head) != nil || json.Unmarshal(head.Kind, &kind) != nil {
		return ""
	}
	return kind
}

// check finds what no schema can say.
func (m *Manifest) check() []Problem {
	var out []Problem
	add := func(path, message string) { out = append(out, Problem{File, path, message}) }
	types := map[string]bool{}
	for i, n := range m.Nodes {
		at := "/nodes/" + strconv.Itoa(i)
		if n.TypeID != "" && types[n.TypeID] {
			add(at+"/typeId", "the pack has a node of this typeId already; each needs its own")
		}
		types[n.TypeID] = true
	}
	for i, a := range m.Connector.Actions {
		if !types[a.TypeID] {
			add("/connector/actions/"+strconv.Itoa(i)+"/typeId", "connector_action_unresolved: want the typeId of one of the pack's nodes")
		}
	}
	for path, ref := range m.refs() {
		if _, ok := within(ref); !ok {
			add(path, wantPath)
		}
	}
	return out
}

// refs yields every member that names a file of the pack, in a fixed order.
func (m *Manifest) refs() func(yield func(path, ref string) bool) {
	return func(yield func(path, ref string) bool) {
		type member struct{ path, ref string }
		var all []member
		for i, n := range m.Nodes {
			at := "/nodes/" + strconv.Itoa(i) + "/"
			all = append(all, member{at + "configSchemaRef", n.ConfigSchemaRef}, member{at + "inputSchemaRef", n.InputSchemaRef},
				member{at + "outputSchemaRef", n.OutputSchemaRef}, member{at + "envelopeContractRef", n.EnvelopeContractRef})
		}
		if m.Runtime.Language != "remote" && m.Runtime.Entry != "" {
			all = append(all, member{"/runtime/entry", m.Runtime.Entry})
		}
		if m.Signing != nil {
			all = append(all, member{"/signing/publicKeyRef", m.Signing.PublicKeyRef}, member{"/signing/signatureRef", m.Signing.SignatureRef})
		}
		for _, r := range all {
			if r.ref != "" && !yield(r.path, r.ref) {
				return
			}
		}
	}
}

// violations carries over what a schema found.
func violations(file string, wrong []schema.Violation) []Problem {
	out := make([]Problem, 0, len(wrong))
	for _, v := range wrong {
		out = append(out, Problem{file, v.InstancePath, v.Message})
	}
	return out
}

// shown is the problem as a part of a message.
func (p Problem) shown() string {
	return p.File + " at " + strconv.Quote(p.Path) + ": " + strings.TrimSpace(p.Message)
}
