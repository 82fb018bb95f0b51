package prompt

import (
	"encoding/json"
	"regexp"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/untrusted"
)

// Scope holds values by name. Untrusted names those from untrusted sources.
type Scope struct {
	Values    map[string]json.RawMessage
	Untrusted map[string]bool
}

// Bindings are the values for the variables of templates.
type Bindings struct {
	Input, Variable, Context Scope
	// Secret returns the value of a host secret; nil disables secrets.
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
	// sent is the text for the model and shown the text for the event. They differ in secrets.
	sent, shown string
	// recorded is the value in the event.
	recorded  json.RawMessage
	untrusted bool
	secret    *secret
}

// plainValue binds a value that is inserted unchanged.
func plainValue(raw json.RawMessage) boundValue {
	text := shownText(raw)
	return boundValue{sent: text, shown: text, recorded: raw}
}

// fencedValue binds an untrusted value. It is fenced in the text and in the event (OpenWOP envelope
// contract §12, §19.2).
func fencedValue(raw json.RawMessage) boundValue {
	text := untrusted.Bare(raw)
	return boundValue{sent: text, shown: text, recorded: quoted(text), untrusted: true}
}

// secret is a value that must not be shown.
type secret struct{ id, value string }

// marker returns the text that replaces the secret's value (OpenWOP envelope contract §11).
func (s secret) marker() string { return "[REDACTED:" + s.id + "]" }

// secretID is the format of a secret's id, which is part of its marker.
var secretID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// resolve returns the value of a variable. ok is false if a required variable has none.
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

// value follows the variable's path within the value of its name. If there is no such value, the
// path starts at the names of the scope.
func (s Scope) value(v Variable) (raw json.RawMessage, tainted bool) {
	path, ok := parsePath(v.ExtractPath)
	if !ok { // validated before
		return nil, false
	}
	name := v.Name
	if _, there := s.Values[name]; !there && len(path) > 0 && path[0].index < 0 {
		name, path = path[0].name, path[1:]
	}
	return follow(s.Values[name], path), s.Untrusted[name]
}

// resolveSecret replaces the id of a secret by its value. Errors do not repeat the id, because a
// caller may have passed the secret itself.
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
