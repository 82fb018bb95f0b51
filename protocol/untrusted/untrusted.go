// Package untrusted marks content that the host does not vouch for before it
// reaches a prompt, so that a model reads it as material and not as instruction
// (OpenWOP envelope contract §12).
package untrusted

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/wire"
)

// Mark says where the content is from. Empty fields have the protocol's defaults.
type Mark struct {
	// Source is run-event unless said otherwise.
	Source string
	// Type is the event's or the kind of content; unknown unless said otherwise.
	Type string
	// Attributes are further ones, written in the order of their names.
	Attributes map[string]string
}

const (
	name          = "UNTRUSTED"
	defaultSource = "run-event"
	defaultType   = "unknown"
)

// mark finds whatever a reader could take for one of our marks: in any case, with
// spaces where a lenient reader allows them.
var mark = regexp.MustCompile(`(?i)<(\s*/?\s*)(` + name + `)`)

// neutral breaks a mark up with a space of no width: people read the same text.
const neutral = "<\u200b$1$2"

// Neutralise breaks up every mark in a text, so that content can neither close its
// own fence nor open another.
func Neutralise(text string) string { return mark.ReplaceAllString(text, neutral) }

// Wrap fences a text. It is kept, but for marks in it.
func Wrap(text string, m Mark) string {
	return m.open() + "\n" + Neutralise(text) + "\n</" + name + ">"
}

// Prompt is a payload as a prompt shows it: fenced if it is untrusted. Strings are
// shown as they are, other JSON is indented by two.
func Prompt(payload json.RawMessage, trust wire.Trust, m Mark) string {
	text := show(payload)
	if trust != wire.Untrusted {
		return text // marks everywhere teach a model to ignore them
	}
	return Wrap(text, m)
}

func show(payload json.RawMessage) string {
	var s string
	if json.Unmarshal(payload, &s) == nil && bytes.HasPrefix(bytes.TrimSpace(payload), []byte(`"`)) {
		return s
	}
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(payload), "", "  ") != nil {
		return string(payload)
	}
	return b.String()
}

func (m Mark) open() string {
	var b strings.Builder
	b.WriteString("<" + name)
	attribute := func(name, value string) {
		b.WriteString(" " + name + `="` + escape.Replace(value) + `"`)
	}
	attribute("source", orElse(m.Source, defaultSource))
	attribute("type", orElse(m.Type, defaultType))
	for _, n := range slices.Sorted(maps.Keys(m.Attributes)) {
		attribute(n, m.Attributes[n])
	}
	b.WriteString(">")
	return b.String()
}

// escape also keeps ">" and line ends out of an attribute, so that a mark always
// ends where it seems to.
var escape = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ")

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
