package prompt

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/wire"
)

// Call is the text of a model call: all that the model is sent, those parts included that the host
// adds.
type Call struct {
	System   string    `json:"system,omitempty"`
	Messages []Message `json:"messages"`
	// SchemaForm is how the vendor gets the schema, if not as the format of the answer.
	SchemaForm string          `json:"schemaForm,omitempty"`
	SchemaName string          `json:"schemaName,omitempty"`
	Schema     json.RawMessage `json:"schema,omitempty"`
}

// Message is one turn of the conversation.
type Message struct {
	Role string `json:"role"`
	// Content is a JSON string, or an array of blocks.
	Content json.RawMessage `json:"content"`
}

// Sent is a call in its recorded form: without secrets, and with digests in place of media and of
// texts that are too long.
type Sent struct {
	call      Call
	refs      []string
	variables map[string]json.RawMessage
}

// sentDocument contains everything of a call that can be recorded.
type sentDocument struct {
	Call      Call                       `json:"call"`
	Variables map[string]json.RawMessage `json:"variableBindings"`
}

// NewSent returns the recorded form of a call. composed are the templates of its texts; nil for a call
// without templates. clean is a redactor that knows further secrets. The hash is computed from the
// result, so clean comes before the event.
func NewSent(call Call, composed *Composition, clean func(doc []byte) ([]byte, error)) (*Sent, error) {
	s, doc := &Sent{refs: []string{}}, sentDocument{Call: abridge(call)}
	if composed != nil {
		s.refs, doc.Variables = composed.Refs, composed.variables
		doc.Call = doc.Call.mapped(composed.show)
	}
	cleaned, err := clean(encode(doc))
	if err != nil {
		return nil, err
	}
	var out sentDocument
	if err := json.Unmarshal(cleaned, &out); err != nil {
		return nil, err
	}
	s.call, s.variables = out.Call, out.Variables
	return s, nil
}

// mapped applies a function to the texts of a call.
func (c Call) mapped(f func(string) string) Call {
	c.System, c.Messages = f(c.System), slices.Clone(c.Messages)
	for i := range c.Messages {
		c.Messages[i].Content = mapStrings(c.Messages[i].Content, f)
	}
	return c
}

// show returns a text that is sent in its recorded form: with markers in place of secrets.
func (c *Composition) show(text string) string {
	for _, part := range [][2]string{{c.Sent.System, c.shown.System}, {c.Sent.User, c.shown.User}} {
		if part[0] != part[1] {
			text = strings.ReplaceAll(text, part[0], part[1])
		}
	}
	if c.hide != nil {
		text = c.hide(text)
	}
	return text
}

// Payload returns the payload of the event of a node's call. Its body is the call as JSON.
func (s *Sent) Payload(nodeID string, trust wire.Trust, o Observability) Payload {
	body := string(encode(s.call))
	p := Payload{
		NodeID:         nodeID,
		Refs:           s.refs,
		Kind:           s.shape(),
		Hash:           hash(body),
		VariableHashes: map[string]string{},
		ContentTrust:   trust,
	}
	for name, raw := range s.variables {
		p.VariableHashes[name] = hash(shownText(raw))
	}
	if o != Full {
		return p
	}
	p.Composed, p.Bindings = &body, s.variables
	if s.call.System != "" {
		p.SystemPrompt = &s.call.System
	}
	if text, ok := s.userText(); ok {
		p.UserPrompt = &text
	}
	return p
}

func (s *Sent) shape() string {
	switch {
	case len(s.call.Messages) == 0:
		return shapeSystem
	case s.call.System == "":
		return shapeUser
	}
	return shapeBoth
}

// userText returns the texts of the user's messages, joined; ok is false if there are none.
func (s *Sent) userText() (text string, ok bool) {
	var texts []string
	for _, m := range s.call.Messages {
		if m.Role != "user" {
			continue
		}
		ok = true
		var blocks []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			texts = append(texts, shownText(m.Content))
			continue
		}
		for _, b := range blocks {
			if b.Text != "" {
				texts = append(texts, b.Text)
			}
		}
	}
	return strings.Join(texts, separator), ok
}

// maxShown limits the texts of a recorded call together. Longer ones are recorded as digests, so that
// the redactor and the log can take the event.
const maxShown = 4 << 20

// abridge replaces media, and the texts that exceed maxShown, by their sizes and digests.
func abridge(call Call) Call {
	room := maxShown
	fit := func(text string) string {
		if len(text) > room {
			return digest(text)
		}
		room -= len(text)
		return text
	}
	call.System = fit(call.System)
	if fitted := fit(string(call.Schema)); fitted != string(call.Schema) {
		call.Schema = quoted(fitted)
	}
	call.Messages = slices.Clone(call.Messages)
	for i, m := range call.Messages {
		v, err := decode(m.Content)
		if err != nil { // unreachable for content that an adapter accepts
			v = string(m.Content)
		}
		call.Messages[i].Content = encode(abridgeValue(v, "", fit))
	}
	return call
}

// abridgeValue is abridge for a value of a message's content, which has a name within its block.
func abridgeValue(v any, name string, fit func(string) string) any {
	switch v := v.(type) {
	case string:
		if holdsMedia(name, v) {
			return digest(v)
		}
		return fit(v)
	case []any:
		for i := range v {
			v[i] = abridgeValue(v[i], name, fit)
		}
	case map[string]any:
		for _, member := range slices.Sorted(maps.Keys(v)) { // fit counts what it has let through
			v[member] = abridgeValue(v[member], member, fit)
		}
	}
	return v
}

// holdsMedia reports whether a member of a block is an image, a sound or a file.
func holdsMedia(name, value string) bool {
	return slices.Contains([]string{"base64", "data", "file_data"}, name) || name == "url" && strings.HasPrefix(value, "data:")
}

// digest describes a text by its size and digest.
func digest(text string) string {
	return "[" + strconv.Itoa(len(text)) + " bytes, " + hash(text) + "]"
}

// Render renders a payload. One that fits no frame is rendered without its texts.
func (p Payload) Render() json.RawMessage {
	if doc := encode(p); len(doc) <= maxRecorded {
		return doc
	}
	p.Composed, p.SystemPrompt, p.UserPrompt, p.Bindings = nil, nil, nil, nil
	return encode(p)
}
