package pack

import (
	_ "embed"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// File is the name of the manifest in a pack's folder.
const File = "pack.json"

// maxManifest limits the manifest, in bytes and levels.
const (
	maxManifest      = 256 << 10
	maxManifestDepth = 32
)

//go:embed manifest.schema.json
var manifestJSON []byte

// manifestSchema is compiled on first use; a test covers the embedded document.
var manifestSchema = sync.OnceValue(func() *schema.Schema { return embedded("pack manifest", manifestJSON) })

// relaxedSchema is the manifest's schema for packs with a file for this host: such a pack needs
// neither nodes nor a runtime.
var relaxedSchema = sync.OnceValue(func() *schema.Schema {
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
	return embedded("pack manifest with "+OwnFile, relaxed)
})

// embedded compiles an embedded schema.
func embedded(name string, doc []byte) *schema.Schema {
	s, err := schema.Compile(name, doc)
	if err != nil {
		panic("pack: " + name + ": " + err.Error())
	}
	return s
}

// Manifest holds the members of a manifest that this host reads.
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
	// Dependencies maps other packs to the accepted versions.
	Dependencies map[string]string `json:"dependencies"`
	// PeerDependencies are capabilities of the host: a string, or an object for aiProviders.
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

// SchemaVersion returns the x-schemaVersion of a kind's schema, if present. The error means that
// the document is not a JSON object, or that the member is not a version.
func SchemaVersion(doc []byte) (version int, reported bool, err error) {
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
		return 0, true, errors.New("x-schemaVersion: want an integer of at least 0, or remove the member")
	}
	return version, true, nil
}

// integer reads a version: 2.0 is the integer 2, as in JSON Schema; "2" is not an integer.
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

// Node is a node type in a manifest.
type Node struct {
	TypeID              string `json:"typeId"`
	Version             string `json:"version"`
	Role                string `json:"role"`
	EnvelopeContractRef string `json:"envelopeContractRef"`
	ConfigSchemaRef     string `json:"configSchemaRef"`
	InputSchemaRef      string `json:"inputSchemaRef"`
	OutputSchemaRef     string `json:"outputSchemaRef"`
	// RequiresSecrets are the secrets that the host must provide.
	RequiresSecrets []Secret `json:"requiresSecrets"`
	// Outputs are the ports with additional attributes.
	Outputs map[string]Port `json:"outputs"`
	// RequiredCredentials and Auth are not supported by this host.
	RequiredCredentials []json.RawMessage `json:"requiredCredentials"`
	Auth                json.RawMessage   `json:"auth"`
	modelgate.Needs
}

// Port describes an output port. The protocol leaves it open for later members.
type Port struct {
	Sensitive bool
	// others are the unknown members.
	others []string
}

// UnmarshalJSON reads a port.
func (p *Port) UnmarshalJSON(doc []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != sensitive {
			p.others = append(p.others, name)
		}
	}
	if value, ok := members[sensitive]; ok {
		return json.Unmarshal(value, &p.Sensitive)
	}
	return nil
}

// sensitive is the member of a port whose values are masked.
const sensitive = "sensitive"

// Secret is a secret that a node requires (OpenWOP host contract §5.7).
type Secret struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Provider string `json:"provider"`
	Scope    string `json:"scope"`
}

// Agent is an agent in a manifest.
type Agent struct {
	ID string `json:"agentId"`
}

// Problem is one error in a file of a pack.
type Problem struct {
	// File is the file's path within the pack.
	File string
	// Path is a JSON pointer into the file; empty for the whole.
	Path string
	// Message states what is allowed.
	Message string
}

// vendorKind is the form of a vendor's kind: vendor.<host>.<kind>.
var vendorKind = regexp.MustCompile(`^vendor\.[a-z][a-z0-9-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)+$`)

// maxKind limits the name of a kind, in bytes.
const maxKind = 256

// VendorKind reports whether a kind may be registered under the name. All other names belong to the
// protocol, and new ones require an RFC (OpenWOP envelope contract §3.1).
func VendorKind(name string) bool { return len(name) <= maxKind && vendorKind.MatchString(name) }

// parse reads a manifest; owned: the pack has a file for this host. It checks the form of paths,
// not whether the files exist. A manifest with problems is returned as far as it is readable, so
// that later checks can report further problems; nil if it is not JSON, or of another kind.
func parse(doc []byte, owned bool) (*Manifest, []Problem) {
	if err := strictjson.Check(doc, strictjson.Limits{MaxBytes: maxManifest, MaxDepth: maxManifestDepth}); err != nil {
		return nil, []Problem{unsound(File, err)}
	}
	if kind := packKind(doc); kind != "" && kind != "node" {
		return nil, []Problem{{File, "/kind", "this host loads packs of kind node only, and leaves the member out for those"}}
	}
	rules := manifestSchema
	if owned {
		rules = relaxedSchema
	}
	found := violations(File, rules(), doc)
	m := &Manifest{}
	if err := strictjson.Read(doc, m); err != nil && len(found) == 0 {
		found = append(found, unsound(File, err))
	}
	return m, append(found, m.check()...)
}

// packKind returns the kind of the pack, if set. Other kinds have other manifests, so violations of
// this schema would not help.
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

// check applies the rules that a schema cannot express.
func (m *Manifest) check() []Problem {
	var out []Problem
	add := func(path, message string) { out = append(out, Problem{File, path, message}) }
	types := map[string]bool{}
	for i, n := range m.Nodes {
		at := "/nodes/" + strconv.Itoa(i)
		if n.TypeID != "" && types[n.TypeID] {
			add(at+"/typeId", "the pack already has a node with this typeId; use unique typeIds")
		}
		types[n.TypeID] = true
		for _, port := range sortedNames(n.Outputs) {
			for _, name := range n.Outputs[port].others {
				if schema.Near(name, []string{sensitive}) != "" { // the values would not be masked
					add(at+"/outputs/"+jsonpointer.Escape(port)+"/"+jsonpointer.Escape(name), "unknown member; did you mean "+sensitive+"?")
				}
			}
		}
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

// refs yields every member that refers to a file of the pack, in a fixed order.
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

// violations returns the violations of a schema by a file.
func violations(file string, s *schema.Schema, doc []byte) []Problem {
	var out []Problem
	for _, v := range s.Validate(doc) {
		out = append(out, Problem{file, v.InstancePath, s.Explain(v, doc)})
	}
	return out
}

// shown returns the problem as part of a message.
func (p Problem) shown() string {
	return p.File + " at " + strconv.Quote(p.Path) + ": " + strings.TrimSpace(p.Message)
}
