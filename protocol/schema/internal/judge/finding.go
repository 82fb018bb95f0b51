package judge

import (
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// Finding is one violation.
type Finding struct {
	// Place is a JSON pointer into the value, SchemaPlace one into the schema.
	Place, SchemaPlace string
	// Keyword is the failed keyword; "false" for a schema that allows nothing.
	Keyword string
	// Message states what is allowed. It repeats nothing of the value.
	Message string
}

// Token is a step into a value.
type Token struct {
	Name string
	item int // counts from 1; 0 means Name is set
}

func item(i int) Token { return Token{item: i + 1} }

// cause is a finding without its message, because many are dropped.
type cause struct {
	at     []Token
	schema *jsonschema.Schema
	kind   jsonschema.ErrorKind
	// rest is the end of the message.
	rest string
	// keyword and place, if set, replace those of kind.
	keyword, place string
	allowed        []any // values of an enum or const
}

func forbidden() jsonschema.ErrorKind { return &kind.FalseSchema{} }
func circular() jsonschema.ErrorKind  { return &kind.RefCycle{} }

// fails records that s does not match at the current position. It always returns false.
func (r *run) fails(s *jsonschema.Schema, failure func() jsonschema.ErrorKind) bool {
	if r.wanted() {
		c := cause{schema: s, kind: failure()}
		switch k := c.kind.(type) {
		case *kind.Enum:
			c.allowed = k.Want
		case *kind.Const:
			c.allowed = []any{k.Want}
		}
		r.note(c)
	}
	return false
}

// failsAt is fails for a member without a name in the schema.
func (r *run) failsAt(s *jsonschema.Schema, name string, failure func() jsonschema.ErrorKind) bool {
	if r.wanted() {
		r.note(cause{schema: s, kind: failure()}, Token{Name: name})
	}
	return false
}

// lacks records a missing member.
func (r *run) lacks(s *jsonschema.Schema, name string) bool {
	if r.wanted() {
		r.note(cause{schema: s, kind: &kind.Required{}, rest: name})
	}
	return false
}

// misnamed records an invalid member name.
func (r *run) misnamed(names *jsonschema.Schema, name, why string) bool {
	if r.wanted() {
		r.note(cause{schema: names, kind: &kind.PropertyNames{}, keyword: "propertyNames", place: jsonpointer.OfFragment(names.Location), rest: ": " + why}, Token{Name: name})
	}
	return false
}

// unasked records a member that unevaluatedProperties forbids.
func (r *run) unasked(s *jsonschema.Schema, name string) bool {
	if r.wanted() {
		r.note(cause{
			schema: s, kind: &kind.AdditionalProperties{}, keyword: "unevaluatedProperties", place: jsonpointer.OfFragment(s.UnevaluatedProperties.Location),
		}, Token{Name: name})
	}
	return false
}

// wanted reports whether a cause would be kept.
func (r *run) wanted() bool {
	return r.quiet == 0 && !r.spent && r.made < maxMade && (r.trying > 0 || len(r.causes) < maxFindings)
}

func (r *run) note(c cause, below ...Token) {
	r.made++
	c.at = slices.Concat(r.path, below)
	r.causes = append(r.causes, c)
}

// findings returns the remaining causes with messages. Paths repeat names of the value and may be
// long, so later findings may be dropped.
func (r *run) findings() []Finding {
	const maxPlaces = 128 << 10
	var out []Finding
	length := 0
	w := wording{members: map[*jsonschema.Schema]string{}}
	for i := range r.causes[:min(len(r.causes), maxFindings)] {
		f := w.finding(&r.causes[i])
		if length += len(f.Place) + len(f.SchemaPlace); length > maxPlaces && len(out) > 0 {
			break
		}
		out = append(out, f)
	}
	return out
}

// wording caches repeated parts of messages.
type wording struct {
	members map[*jsonschema.Schema]string
}

func (w *wording) finding(c *cause) Finding {
	f := Finding{Place: place(c.at), SchemaPlace: c.place, Keyword: c.keyword, Message: c.message()}
	if f.Keyword == "" {
		f.Keyword = c.word()
	}
	if f.SchemaPlace == "" {
		f.SchemaPlace = jsonpointer.OfFragment(c.schema.Location) + jsonpointer.Of(c.kind.KeywordPath()...)
	}
	if _, ok := c.kind.(*kind.AdditionalProperties); ok {
		f.Message += w.allowed(c.schema)
	}
	return f
}

// allowed lists the members that an object schema names.
func (w *wording) allowed(s *jsonschema.Schema) string {
	if text, ok := w.members[s]; ok {
		return text
	}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	text := ""
	if len(names) > 0 {
		text = "; allowed: " + joined(names)
	}
	w.members[s] = text
	return text
}

// word returns the failed keyword.
func (c *cause) word() string {
	if path := c.kind.KeywordPath(); len(path) > 0 {
		return path[0]
	}
	return "false"
}

func (c *cause) message() string { return describe(c.kind) + c.rest }

// place encodes steps as a JSON pointer.
func place(at []Token) string {
	tokens := make([]string, len(at))
	for i, t := range at {
		if tokens[i] = t.Name; t.item > 0 {
			tokens[i] = strconv.Itoa(t.item - 1)
		}
	}
	return jsonpointer.Of(tokens...)
}
