// Package kinds is the one registry of envelope kinds: name, version, schema.
// Discovery, the schema endpoint and validation all read it.
//
// It holds the kinds of the protocol from the start, in this project's own
// wording, and whatever vendor kinds are registered before the service serves.
// A kind's name reaches a URL path, so it is only ever looked up, never joined
// to a path (OpenWOP envelope contract §4).
package kinds

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/services/acceptor/accept"
)

//go:embed universal/*.schema.json core/*.schema.json
var protocolKinds embed.FS

// protocolVersion is the advertised version of the protocol's kinds (RFC 0094 for
// the universal ones).
const protocolVersion = 1

// Core lists the protocol's content kinds: any host may advertise them, and a
// contract decides about them as about vendor kinds (OpenWOP envelope contract
// §3.1).
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
	LintOff    Lint = "off"    // not looked at
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
	// Origin is what brought a vendor's kind, such as a pack; for messages.
	Origin string

	compiled *schema.Schema
}

// Registry holds kinds by name. Fill it before it is shared: reading is safe
// for concurrent use, registering is not.
type Registry struct {
	lint  Lint
	kinds map[string]Kind
}

// New makes a registry with the protocol's kinds.
func New(lint Lint) (*Registry, error) {
	r := &Registry{lint: lint, kinds: map[string]Kind{}}
	for _, name := range append(accept.Universals(), Core()...) {
		doc, err := protocolSchema(name)
		if err != nil {
			return nil, fmt.Errorf("embedded schema of %s: %w", name, err)
		}
		r.kinds[name], err = compile(Kind{Name: name, Version: protocolVersion, Schema: doc, Universal: accept.IsUniversal(name)})
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// protocolSchema is the document of a kind of the protocol's.
func protocolSchema(name string) ([]byte, error) {
	switch {
	case name == accept.KindSurface: // who asks with one judges it by the same
		return a2ui.Schema(), nil
	case accept.IsUniversal(name):
		return protocolKinds.ReadFile("universal/" + name + suffix)
	default:
		return protocolKinds.ReadFile("core/" + name + suffix)
	}
}

// Register adds a vendor kind. The warnings say where its schema leaves the
// Tier-1 subset. Errors: fault.ValidationError for a name that is no vendor
// kind's or is taken, a negative version, a document that is no JSON Schema, and
// at LintStrict for whatever would be a warning.
func (r *Registry) Register(name string, version int, doc []byte) (warnings []string, err error) {
	return r.register(name, version, doc, "")
}

// register is Register for a kind that came from somewhere.
func (r *Registry) register(name string, version int, doc []byte, origin string) (warnings []string, err error) {
	if !pack.VendorKind(name) {
		return nil, fault.New(fault.ValidationError, "kind %q: needs a name of the form vendor.<host>.<kind>", name)
	}
	if version < 0 {
		return nil, fault.New(fault.ValidationError, "kind %s: version %d: needs an integer of 0 or more", name, version)
	}
	if k, taken := r.kinds[name]; taken {
		if k.Origin == "" {
			return nil, fault.New(fault.ValidationError, "kind %s: is registered already", name)
		}
		return nil, fault.New(fault.ValidationError, "kind %s: is registered already, from %s; a host has one schema of a kind", name, k.Origin)
	}
	kind, err := compile(Kind{Name: name, Version: version, Schema: slices.Clone(doc), Origin: origin})
	if err != nil { // a rule has nothing to say about what is no schema
		return nil, err
	}
	if warnings, err = r.check(name, doc); err != nil {
		return nil, err
	}
	r.kinds[name] = kind
	return warnings, nil
}

// check lints the schema at the configured level. A variant payload that models
// cannot be held to (oneOf, a union without a discriminator) is found at every
// level but off (OpenWOP envelope contract §4.2).
func (r *Registry) check(name string, doc []byte) ([]string, error) {
	level := schema.LevelAlways
	switch r.lint {
	case LintOff:
		return nil, nil
	case LintStrict:
		level = schema.LevelStrict
	case LintWarn:
	}
	var out []string
	for _, f := range schema.Lint(doc, level) {
		out = append(out, fmt.Sprintf("kind %s: schema at %q: %s%s: %s", name, f.Path, f.Rule, concerns(f.Vendors), f.Message))
	}
	if r.lint == LintStrict && len(out) > 0 {
		return nil, fault.New(fault.ValidationError, "kind %s: its schema leaves the structured-output subset: %s", name, strings.Join(out, "; ")).With("findings", out)
	}
	return out, nil
}

// concerns names the vendors whose models cannot be held to the schema.
func concerns(vendors []string) string {
	if len(vendors) == 0 {
		return ""
	}
	return " (" + strings.Join(vendors, ", ") + ")"
}

// compile makes a kind ready to judge payloads.
func compile(k Kind) (Kind, error) {
	compiled, err := schema.Compile(k.Name, k.Schema)
	if err != nil {
		return Kind{}, fault.New(fault.ValidationError, "kind %s: not a usable JSON Schema: %s", k.Name, err)
	}
	k.compiled = compiled
	return k, nil
}

// Subset is the claim a host may make about all its kinds together
// (envelopes.tierOneSubsetCompliance). The protocol's own kinds leave the strict
// subset, so that a host which looks at all says warn (OpenWOP envelope contract
// §24, C16).
func (r *Registry) Subset() Lint {
	if r.lint == LintOff {
		return LintOff
	}
	for _, k := range r.kinds {
		if len(schema.Lint(k.Schema, schema.LevelStrict)) > 0 {
			return LintWarn
		}
	}
	return LintStrict
}

// Find gives a kind the way the pipeline looks at it.
func (r *Registry) Find(name string) (accept.Kind, bool) {
	k, ok := r.kinds[name]
	if !ok {
		return accept.Kind{}, false
	}
	return accept.Kind{Name: k.Name, Version: k.Version, Payload: k.compiled}, true
}

// Names lists all kinds, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// All lists all kinds by name.
func (r *Registry) All() []Kind {
	out := make([]Kind, 0, len(r.kinds))
	for _, name := range r.Names() {
		out = append(out, r.kinds[name])
	}
	return out
}
