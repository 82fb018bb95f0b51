package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/untrusted"
	"waybill.dev/waybill/protocol/wire"
)

// placeholder is the same as in prompts.
var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}`)

// maxFilled limits what a template adds to its texts, in bytes, because they can name a long value many
// times.
const maxFilled = 16 << 20

// HasPlaceholders reports whether a document has placeholders.
func HasPlaceholders(doc []byte) bool { return placeholder.Match(doc) }

// Template fills the placeholders of texts and documents in the config of a node that is not a
// prompt: arguments of tools, messages to agents, and questions to people. It replaces {{name}} by a node's port, else by a variable. A declared one without a value is empty
// in a text, and null as a whole value.
type Template struct {
	In Input
	// Fenced puts untrusted values into fences, for a reader that may be a model (OpenWOP envelope
	// contract §12). Values for programs stay unfenced.
	Fenced bool

	// Untrusted is set if an untrusted value was used.
	Untrusted bool

	missing []string
	filled  int
}

// Text fills a text. Strings are inserted unquoted, other values as JSON. Errors contain the path.
func (t *Template) Text(path, text string) (string, *wire.NodeError) {
	out := t.fill(text)
	return out, t.unresolved(path)
}

// JSON fills the strings of a document. A string that is only a placeholder becomes the value
// itself. Member names stay unchanged.
func (t *Template) JSON(path string, doc json.RawMessage) (json.RawMessage, *wire.NodeError) {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber() // integers pass unchanged, however large
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, Invalid("%s: not JSON", path)
	}
	v, bad := t.fillValue(path, v)
	if bad != nil {
		return nil, bad
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, Invalid("%s: a value cannot be put into the document", path)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func (t *Template) fillValue(path string, v any) (any, *wire.NodeError) {
	var bad *wire.NodeError
	switch v := v.(type) {
	case string:
		return t.fillString(path, v)
	case map[string]any:
		for _, name := range sortedKeys(v) { // sorted, so that the first problem is always the same
			if v[name], bad = t.fillValue(path+"/"+jsonpointer.Escape(name), v[name]); bad != nil {
				return nil, bad
			}
		}
	case []any:
		for i := range v {
			if v[i], bad = t.fillValue(path+"/"+strconv.Itoa(i), v[i]); bad != nil {
				return nil, bad
			}
		}
	}
	return v, nil
}

func sortedKeys(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (t *Template) fillString(path, text string) (any, *wire.NodeError) {
	if m := placeholder.FindStringSubmatch(text); m != nil && m[0] == text {
		raw, _, ok := t.value(m[1])
		if !ok {
			t.missing = append(t.missing, m[1])
		}
		t.filled += len(raw)
		return raw, t.unresolved(path)
	}
	return t.Text(path, text)
}

func (t *Template) fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(m string) string {
		name := placeholder.FindStringSubmatch(m)[1]
		raw, tainted, ok := t.value(name)
		if !ok {
			t.missing = append(t.missing, name)
		}
		if t.filled > maxFilled {
			return ""
		}
		value := t.Show(name, raw, tainted)
		t.filled += len(value)
		return value
	})
}

// Show renders a value as text.
func (t *Template) Show(name string, raw json.RawMessage, tainted bool) string {
	if t.In.Unset(name) {
		return ""
	}
	if tainted && t.Fenced {
		return untrusted.Prompt(raw, wire.Untrusted, t.mark(name))
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func (t *Template) mark(name string) untrusted.Mark {
	if _, ok := t.In.Ports[name]; ok {
		return t.In.Mark("input", name)
	}
	return untrusted.Mark{Type: "variable", Attributes: map[string]string{"name": name}}
}

func (t *Template) value(name string) (raw json.RawMessage, tainted, ok bool) {
	if raw, ok = t.In.Ports[name]; ok {
		tainted = t.In.UntrustedPorts[name]
	} else if raw, ok = t.In.Variables[name]; ok {
		tainted = t.In.UntrustedVariables[name]
	} else if t.In.Declared[name] {
		raw, ok = json.RawMessage("null"), true
	}
	t.Untrusted = t.Untrusted || tainted
	return raw, tainted, ok
}

func (t *Template) unresolved(path string) *wire.NodeError {
	if t.filled > maxFilled {
		return &wire.NodeError{
			Code:    string(fault.ContentTooLong),
			Message: fmt.Sprintf("%s: the values of the placeholders have more than %d bytes together; use shorter ones", path, maxFilled),
		}
	}
	if len(t.missing) == 0 {
		return nil
	}
	return &wire.NodeError{
		Code:    string(fault.PromptVariable),
		Message: fmt.Sprintf("%s: no port and no variable is named %s", path, strings.Join(t.missing, ", ")),
	}
}
