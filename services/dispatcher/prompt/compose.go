package prompt

import (
	"encoding/json"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// Text is the text of a composition.
type Text struct{ System, User string }

// Composition is a prompt rendered from templates.
type Composition struct {
	// Refs are the templates with their versions: system, user, others.
	Refs []string
	// Sent contains the real values of secrets. It is only sent to the model.
	Sent Text
	// HasSystem and HasUser distinguish an empty text from none.
	HasSystem, HasUser bool
	// Trust is untrusted if the value of any variable is.
	Trust wire.Trust

	shown     Text
	variables map[string]json.RawMessage
	origins   map[string]origin   // origins of variables
	hide      func(string) string // replaces the values of secrets; nil without secrets
}

// Compose renders templates. Few-shot examples come before the user's text, schema hints after the
// system's. The error is one of validation_error, prompt_variable_unresolved,
// credential_unavailable or content_too_long.
func Compose(parts []Part, b Bindings) (*Composition, *fault.Error) {
	c := &composer{
		Composition: &Composition{Trust: wire.Trusted, variables: map[string]json.RawMessage{}, origins: map[string]origin{}},
		room:        maxComposed, roomForValues: maxComposed,
	}
	for _, p := range parts {
		if err := c.addPart(p, b); err != nil {
			return nil, err
		}
	}
	if len(c.unresolved) > 0 {
		return nil, unresolved(c.unresolved)
	}
	made := c.finish()
	if err := made.checkShown(); err != nil {
		return nil, err
	}
	return made, nil
}

func unresolved(names []string) *fault.Error {
	return fault.New(fault.PromptVariable, "required variables of the prompt have no value: %s", strings.Join(names, ", ")).
		With("variable", names[0]).With("variables", names)
}

// composer collects the parts of a composition.
type composer struct {
	*Composition

	system, hints, examples, user []filledText
	secrets                       []*secret
	unresolved                    []string
	// room and roomForValues are the remaining bytes.
	room, roomForValues int
}

// filledText is a rendered template.
type filledText struct{ sent, shown string }

// addPart renders one template.
func (c *composer) addPart(p Part, b Bindings) *fault.Error {
	values := map[string]boundValue{}
	for _, v := range p.Template.slots() {
		value, ok, err := b.resolve(p, v)
		switch {
		case err != nil:
			return err
		case !ok:
			if !slices.Contains(c.unresolved, v.Name) {
				c.unresolved = append(c.unresolved, v.Name)
			}
			continue
		}
		if c.roomForValues -= len(value.shown); c.roomForValues < 0 {
			return bindTooLong(origin{p.Template.Ref(), v.Name})
		}
		values[v.Name] = value
		c.recordValue(p, v.Name, value)
	}
	c.Refs = append(c.Refs, p.Template.Ref())
	made, err := c.fillText(p.Template, values)
	if err != nil {
		return err
	}
	switch p.Template.Kind {
	case System:
		c.system = append(c.system, made)
	case SchemaHint:
		c.hints = append(c.hints, made)
	case FewShot:
		c.examples = append(c.examples, made)
	case User:
		c.user = append(c.user, made)
	}
	return nil
}

// recordValue records a value for the event. If another template uses the name for another value,
// the name gets its template's id as prefix. An untrusted value makes the composition untrusted,
// even if the text does not contain it.
func (c *composer) recordValue(p Part, name string, value boundValue) {
	if value.untrusted {
		c.Trust = wire.Untrusted
	}
	if value.secret != nil {
		c.secrets = append(c.secrets, value.secret)
	}
	of := origin{p.Template.Ref(), name}
	if other, taken := c.variables[name]; taken && string(other) != string(value.recorded) {
		name = p.Template.ID + "." + name
	}
	c.variables[name], c.origins[name] = value.recorded, of
}

// fillText inserts values into a text in one pass, so a value that looks like a placeholder stays
// text. It stops at the size limit.
func (c *composer) fillText(t *Template, values map[string]boundValue) (filledText, *fault.Error) {
	var sent, shown strings.Builder
	put := func(v boundValue, o origin) *fault.Error {
		if c.room -= max(len(v.sent), len(v.shown)); c.room < 0 {
			return textTooLong(o)
		}
		sent.WriteString(v.sent)
		shown.WriteString(v.shown)
		return nil
	}
	text := func(s string) *fault.Error { return put(boundValue{sent: s, shown: s}, origin{template: t.Ref()}) }
	done := 0
	for _, at := range placeholder.FindAllStringIndex(t.Text, -1) {
		if err := text(t.Text[done:at[0]]); err != nil {
			return filledText{}, err
		}
		name := placeName(placeholder.FindStringSubmatch(t.Text[at[0]:at[1]]))
		if err := put(values[name], origin{t.Ref(), name}); err != nil {
			return filledText{}, err
		}
		done = at[1]
	}
	if err := text(t.Text[done:]); err != nil {
		return filledText{}, err
	}
	return filledText{sent.String(), shown.String()}, nil
}

// finish joins the parts and masks the secrets in the recorded texts.
func (c *composer) finish() *Composition {
	out := c.Composition
	system, user := append(c.system, c.hints...), append(c.examples, c.user...)
	out.HasSystem, out.HasUser = len(system) > 0, len(user) > 0
	out.Sent = Text{joinTexts(system, filledText.sentText), joinTexts(user, filledText.sentText)}
	out.shown = Text{joinTexts(system, filledText.shownText), joinTexts(user, filledText.shownText)}
	out.mask(c.secrets)
	return out
}

func (p filledText) sentText() string  { return p.sent }
func (p filledText) shownText() string { return p.shown }

func joinTexts(pieces []filledText, face func(filledText) string) string {
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		texts[i] = face(p)
	}
	return strings.Join(texts, separator)
}

// separator separates parts.
const separator = "\n\n"

// mask replaces the values of secrets by their markers in all recorded texts.
func (c *Composition) mask(secrets []*secret) {
	if len(secrets) == 0 {
		return
	}
	c.hide = newMasker(secrets)
	c.shown.System, c.shown.User = c.hide(c.shown.System), c.hide(c.shown.User)
	for name, raw := range c.variables {
		c.variables[name] = mapStrings(raw, c.hide)
	}
}

// shownDocument contains everything of a composition that can be recorded.
type shownDocument struct {
	System    string                     `json:"systemPrompt"`
	User      string                     `json:"userPrompt"`
	Variables map[string]json.RawMessage `json:"variableBindings"`
}

// Redact passes the recorded texts to a redactor that knows further secrets. Sent stays unchanged.
// The hash is computed from the result, so Redact comes before the event.
func (c *Composition) Redact(clean func(doc []byte) ([]byte, error)) error {
	doc, err := json.Marshal(shownDocument{c.shown.System, c.shown.User, c.variables})
	if err != nil {
		return err
	}
	if doc, err = clean(doc); err != nil {
		return err
	}
	var out shownDocument
	if err := json.Unmarshal(doc, &out); err != nil {
		return err
	}
	c.shown, c.variables = Text{out.System, out.User}, out.Variables
	return nil
}
