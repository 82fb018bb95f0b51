package prompt

import (
	"encoding/json"
	"regexp"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/untrusted"
)

// Scope has values by name; those in Untrusted come from nobody who may be believed.
type Scope struct {
	Values    map[string]json.RawMessage
	Untrusted map[string]bool
}

// Bindings are what the variables of templates can be filled with.
type Bindings struct {
	Input, Variable, Context Scope
	// Secret gives the value of a secret of this host; nil: there are none.
	Secret func(id string) (value string, ok bool)
}

func (b Bindings) scope(s Source) Scope {
	switch s {
	case FromVariable:
		return b.Variable
	case FromContext:
		return b.Context
	case FromInput, FromSecret:
	}
	return b.Input
}

// boundValue is the value of a variable.
type boundValue struct {
	// sent is the text that goes to the model, shown what is told of it. They differ in
	// secrets.
	sent, shown string
	// recorded is the value as the event has it.
	recorded  json.RawMessage
	untrusted bool
	secret    *secret
}

// plainValue is a value that stands in a text as it is.
func plainValue(raw json.RawMessage) boundValue {
	text := shownText(raw)
	return boundValue{sent: text, shown: text, recorded: raw}
}

// fencedValue is a value that nobody vouches for: it stands between bare marks, in the text
// and in the event (OpenWOP envelope contract §12, §19.2).
func fencedValue(raw json.RawMessage) boundValue {
	text := untrusted.Bare(raw)
	return boundValue{sent: text, shown: text, recorded: quoted(text), untrusted: true}
}

// secret is a value that must not show.
type secret struct{ id, value string }

// marker stands where the value of a secret stood (OpenWOP envelope contract §11).
func (s secret) marker() string { return "[REDACTED:" + s.id + "]" }

// secretID is the form of a secret's id: it stands in a marker.
var secretID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// resolve finds the value of a variable. ok is false if a required one has none.
func (b Bindings) resolve(p Part, v Variable) (out boundValue, ok bool, err *fault.Error) {
	raw, tainted := p.Overrides[v.Name], false
	if isMissing(raw) {
		raw, tainted = b.scope(v.source()).value(v)
	}
	if isMissing(raw) {
		if v.Required {
			return boundValue{}, false, nil
		}
		raw, tainted = v.Default, false
	}
	if isMissing(raw) {
		return plainValue(json.RawMessage(`""`)), true, nil
	}
	if !v.accepts(raw) {
		return boundValue{}, false, fault.New(fault.ValidationError, "the variable %q of the template %s wants a value of type %s", v.Name, p.Template.Ref(), v.Type).
			With("variable", v.Name)
	}
	if v.source() == FromSecret {
		out, err = b.resolveSecret(p, v, raw, tainted)
		return out, err == nil, err
	}
	if raw = canonical(raw); tainted {
		return fencedValue(raw), true, nil
	}
	return plainValue(raw), true, nil
}

// value follows the variable's path: within the value of its name, or else from the
// names of the scope on.
func (s Scope) value(v Variable) (raw json.RawMessage, tainted bool) {
	path, ok := parsePath(v.ExtractPath)
	if !ok { // parsed before
		return nil, false
	}
	name := v.Name
	if _, there := s.Values[name]; !there && len(path) > 0 && path[0].index < 0 {
		name, path = path[0].name, path[1:]
	}
	return follow(s.Values[name], path), s.Untrusted[name]
}

// resolveSecret turns the id of a secret into its value. The id is not repeated in errors:
// somebody may have given the secret itself.
func (b Bindings) resolveSecret(p Part, v Variable, raw json.RawMessage, tainted bool) (boundValue, *fault.Error) {
	fail := func(why string) (boundValue, *fault.Error) {
		return boundValue{}, fault.New(fault.CredentialUnavailable, "the variable %q of the template %s %s", v.Name, p.Template.Ref(), why).
			With("variable", v.Name)
	}
	if tainted {
		return fail("would take the secret that an untrusted value names; name it in the workflow")
	}
	var s secret
	if json.Unmarshal(raw, &s.id) != nil || !secretID.MatchString(s.id) {
		return fail("wants the id of a secret")
	}
	there := false
	if b.Secret != nil {
		s.value, there = b.Secret(s.id)
	}
	if !there {
		return fail("names a secret that this host does not have")
	}
	return boundValue{sent: s.value, shown: s.marker(), recorded: quoted(s.marker()), secret: &s}, nil
}
