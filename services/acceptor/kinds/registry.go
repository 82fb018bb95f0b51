// Package kinds is the registry of envelope kinds: name, version, schema. Discovery,
// the schema endpoint and validation all read it.
//
// It has the kinds of the protocol, with schemas in this project's own wording, and
// the vendor kinds that are registered before the service starts. Kind names come from
// URL paths. They are only used as map keys, never joined to a file path (OpenWOP
// envelope contract §4).
package kinds

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

//go:embed universal/*.schema.json core/*.schema.json
var protocolKinds embed.FS

// protocolVersion is the advertised version of the protocol's kinds (RFC 0094 for the
// universal kinds).
const protocolVersion = 1

// Core lists the protocol's content kinds. Any host may advertise them. Contracts treat
// them like vendor kinds (OpenWOP envelope contract §3.1).
func Core() []string {
	return []string{accept.KindImage, accept.KindAudio, accept.KindFile, accept.KindSurface}
}

// Lint is what happens to a vendor kind whose schema leaves the Tier-1 subset
// (envelopes.tierOneSubsetCompliance).
type Lint string

// The three levels.
const (
	LintStrict Lint = "strict" // refused
	LintWarn   Lint = "warn"   // registered, and a warning
	LintOff    Lint = "off"    // not linted
)

// Valid reports whether l is one of the three levels.
func (l Lint) Valid() bool { return l == LintStrict || l == LintWarn || l == LintOff }

// Kind is a registered kind.
type Kind struct {
	Name    string
	Version int
	// Schema is the JSON Schema document of its payload, as registered.
	Schema    json.RawMessage
	Universal bool
	// Origin is the source of a vendor kind, such as a pack, for messages.
	Origin string

	compiled *schema.Schema
}

// Registry has kinds by name. Reading and replacing are safe for concurrent use, registering is not.
type Registry struct {
	lint Lint

	mu    sync.RWMutex // guards kinds against Replace
	kinds map[string]Kind
}

// Replace replaces the kinds by those of another registry, in one step.
func (r *Registry) Replace(by *Registry) {
	kinds := by.snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds = kinds
}

// snapshot returns the kinds. Nothing changes the map after registration.
func (r *Registry) snapshot() map[string]Kind {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.kinds
}

// New makes a registry with the protocol's kinds.
func New(lint Lint) (*Registry, error) {
	r := &Registry{lint: lint, kinds: map[string]Kind{}}
	for _, name := range append(wire.Universals(), Core()...) {
		doc, err := protocolSchema(name)
		if err != nil {
			return nil, fmt.Errorf("embedded schema of %s: %w", name, err)
		}
		r.kinds[name], err = compile(Kind{
			Name:      name,
			Version:   protocolVersion,
			Schema:    doc,
			Universal: wire.IsUniversal(name),
		})
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// protocolSchema returns the schema of a kind of the protocol.
func protocolSchema(name string) ([]byte, error) {
	switch {
	case name == accept.KindSurface: // the schema that interrupts use for surfaces
		return a2ui.Schema(), nil
	case wire.IsUniversal(name):
		return protocolKinds.ReadFile("universal/" + name + suffix)
	default:
		return protocolKinds.ReadFile("core/" + name + suffix)
	}
}

// Register adds a vendor kind. The warnings list where its schema leaves the Tier-1
// subset, what vendors refuse or get in another form, and probable mistakes. Errors: fault.ValidationError
// for a name that is not a vendor kind's or is registered, a negative version, a document that is not a JSON
// Schema, has a misspelled keyword or allows no payload, and at LintStrict outside the subset.
func (r *Registry) Register(name string, version int, doc []byte) (warnings []string, err error) {
	return r.register(name, version, doc, "")
}

// register is Register with the kind's origin.
func (r *Registry) register(name string, version int, doc []byte, origin string) (warnings []string, err error) {
	if !pack.VendorKind(name) {
		return nil, fault.New(fault.ValidationError, "kind %q: the name must have the form vendor.<host>.<kind>, with a host in lower case", name)
	}
	if version < 0 {
		return nil, fault.New(fault.ValidationError, "kind %s: version %d: must be an integer of 0 or more", name, version)
	}
	if k, taken := r.kinds[name]; taken {
		if k.Origin == "" {
			return nil, fault.New(fault.ValidationError, "kind %s: already registered", name)
		}
		return nil, fault.New(fault.ValidationError, "kind %s: already registered, from %s; a kind has one schema per host", name, k.Origin)
	}
	kind, err := compile(Kind{Name: name, Version: version, Schema: slices.Clone(doc), Origin: origin})
	if err != nil { // before linting, which needs a valid schema
		return nil, err
	}
	var mistakes []schema.Finding
	if r.lint != LintOff {
		mistakes = schema.Mistakes(doc)
	}
	if err := checkMistakes(name, mistakes); err != nil {
		return nil, err
	}
	if warnings, err = r.lintSchema(name, doc, mistakes); err != nil {
		return nil, err
	}
	warnings = append(warnings, r.reviewSchema(name, doc)...)
	r.kinds[name] = kind
	return warnings, nil
}

// checkMistakes rejects misspelled keywords, because payloads would not be checked for what the author
// wants, and schemas that allow no payload.
func checkMistakes(name string, found []schema.Finding) error {
	var out []string
	for _, f := range found {
		if f.Unsatisfiable || isUnknown(f) && !f.Warning {
			out = append(out, fmt.Sprintf("at %q: %s", f.Path, f.Message))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return fault.New(fault.ValidationError, "kind %s: its schema has mistakes: %s", name, strings.Join(out, "; ")).With("findings", out)
}

func isUnknown(f schema.Finding) bool { return f.Rule == schema.RuleUnknownKeyword }

// lintSchema lints the schema at the configured level. Variant payloads that providers
// cannot enforce (oneOf, a union without a discriminator) are found at every level
// except off (OpenWOP envelope contract §4.2). Contradictions, values and formats are no part of the
// subset: they are warnings at LintStrict, too.
func (r *Registry) lintSchema(name string, doc []byte, mistakes []schema.Finding) ([]string, error) {
	level := schema.LevelAlways
	switch r.lint {
	case LintOff:
		return nil, nil
	case LintStrict:
		level = schema.LevelStrict
	case LintWarn:
	}
	var out []string
	list := func(f schema.Finding) {
		out = append(out, fmt.Sprintf("kind %s: schema at %q: %s%s: %s", name, f.Path, f.Rule, vendorList(f.Vendors), f.Message))
	}
	for _, f := range schema.Lint(doc, level) {
		list(f)
	}
	for _, f := range mistakes {
		if isUnknown(f) {
			list(f)
		}
	}
	if r.lint == LintStrict && len(out) > 0 {
		return nil, fault.New(fault.ValidationError, "kind %s: its schema leaves the structured-output subset: %s", name, strings.Join(out, "; ")).
			With("findings", out)
	}
	for _, f := range mistakes {
		if !isUnknown(f) {
			list(f)
		}
	}
	return out, nil
}

// reviewSchema lists what vendors refuse of a schema, and what models answer in another shape.
func (r *Registry) reviewSchema(name string, doc []byte) []string {
	if r.lint == LintOff {
		return nil
	}
	var out []string
	for _, found := range projection.Review(doc, projection.Builtin()...) {
		if !found.Notable() {
			continue
		}
		out = append(out, fmt.Sprintf("kind %s: schema: %s: %s", name, found.Rule, found))
	}
	return out
}

// vendorList lists the vendors that cannot enforce the schema.
func vendorList(vendors []string) string {
	if len(vendors) == 0 {
		return ""
	}
	return " (" + strings.Join(vendors, ", ") + ")"
}

// compile compiles the schema of a kind.
func compile(k Kind) (Kind, error) {
	compiled, err := schema.Compile(k.Name, k.Schema)
	if err != nil {
		return Kind{}, fault.New(fault.ValidationError, "kind %s: not a usable JSON Schema: %s", k.Name, err)
	}
	k.compiled, k.Schema = compiled, compiled.Document()
	return k, nil
}

// Subset is the compliance that the host advertises for all its kinds together
// (envelopes.tierOneSubsetCompliance). The protocol's own kinds leave the strict
// subset, so a host that lints advertises warn (OpenWOP envelope contract §24, C16).
func (r *Registry) Subset() Lint {
	if r.lint == LintOff {
		return LintOff
	}
	if len(r.Violations()) > 0 {
		return LintWarn
	}
	return LintStrict
}

// Violation is a kind whose schema leaves the strict subset, and the rules that it breaks.
type Violation struct {
	Kind  string
	Rules []string
}

// Violations lists the kinds that leave the strict subset, those of the protocol included; none if nothing
// is linted. A host that advertises warn serves them, and logs them (envelopes.tierOneSubsetCompliance).
func (r *Registry) Violations() []Violation {
	if r.lint == LintOff {
		return nil
	}
	var out []Violation
	for _, k := range r.All() {
		var rules []string
		for _, f := range schema.Lint(k.Schema, schema.LevelStrict) {
			if !slices.Contains(rules, f.Rule) {
				rules = append(rules, f.Rule)
			}
		}
		if len(rules) > 0 {
			out = append(out, Violation{k.Name, rules})
		}
	}
	return out
}

// Find returns a kind for the pipeline.
func (r *Registry) Find(name string) (accept.Kind, bool) {
	k, ok := r.snapshot()[name]
	if !ok {
		return accept.Kind{}, false
	}
	return accept.Kind{Name: k.Name, Version: k.Version, Payload: k.compiled}, true
}

// Names returns the names of all kinds, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.snapshot())) }

// All returns all kinds, sorted by name.
func (r *Registry) All() []Kind {
	all := r.snapshot()
	out := make([]Kind, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}
