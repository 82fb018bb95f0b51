// Package untrusted marks untrusted content before it reaches a prompt, so that a model treats it
// as data and not as instructions (OpenWOP envelope contract §12).
package untrusted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"waybill.dev/waybill/protocol/wire"
)

// Mark describes the origin of the content. Empty fields use the protocol's defaults.
type Mark struct {
	// Source defaults to run-event.
	Source string
	// Type is the event's or the kind of content; it defaults to unknown.
	Type string
	// Attributes are additional attributes, written in the order of their names.
	Attributes map[string]string
}

const (
	name          = "UNTRUSTED"
	defaultSource = "run-event"
	defaultType   = "unknown"
)

// mark matches everything a model could read as one of our marks: any case, full-width letters, and
// spaces or zero-width characters in between.
var mark = func() *regexp.Regexp {
	const between = `[\s\v\p{Z}\p{Cc}\p{Cf}]*`
	var b strings.Builder
	b.WriteString(`[<\x{FF1C}\x{FE64}\x{2039}\x{3008}\x{27E8}](` + between + `[/\x{FF0F}\x{2044}\x{2215}]?`)
	for _, c := range name {
		wide := c - 'A' + '\uFF21'
		fmt.Fprintf(&b, `%s[%c%c%c%c]`, between, c, unicode.ToLower(c), wide, wide+('\uFF41'-'\uFF21'))
	}
	b.WriteString(`)`)
	return regexp.MustCompile(b.String())
}()

// Neutralise escapes the bracket of every mark in a text, so that content can neither close its own
// fence nor open another.
func Neutralise(text string) string { return mark.ReplaceAllString(text, "&lt;$1") }

// Wrap fences a text, after neutralising the marks in it.
func Wrap(text string, m Mark) string {
	return m.open() + "\n" + Neutralise(text) + "\n</" + name + ">"
}

// Bare fences a payload between marks without attributes, as composed prompts do (OpenWOP envelope
// contract §19.2).
func Bare(payload json.RawMessage) string {
	return "<" + name + ">" + Neutralise(show(payload)) + "</" + name + ">"
}

// Prompt returns a payload for a prompt: fenced if it is untrusted. Strings are shown as they are,
// other JSON is indented by two.
func Prompt(payload json.RawMessage, trust wire.Trust, m Mark) string {
	text := show(payload)
	if trust != wire.Untrusted {
		return text // marks on everything would teach a model to ignore them
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
		if attributeName.MatchString(n) && n != "source" && n != "type" {
			attribute(n, m.Attributes[n])
		}
	}
	b.WriteString(">")
	return b.String()
}

// attributeName matches valid attribute names; others are dropped.
var attributeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// escape also removes ">" and line ends from attributes, so that a mark always ends where it
// appears
// to end.
var escape = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "\n", " ", "\r", " ")

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
