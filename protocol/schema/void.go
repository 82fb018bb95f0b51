package schema

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// RuleRepeated is the rule of a value that an enum lists twice.
const RuleRepeated = "repeated"

// withoutEffect are keywords that check nothing unless the schema has one of others.
var withoutEffect = map[string][]string{
	"minContains": {"contains"}, "maxContains": {"contains"}, "then": {"if"}, "else": {"if"}, "if": {"then", "else"},
}

// void finds keywords that check nothing, or that no value passes.
func (m *mistakes) void(p *position) {
	for _, keyword := range sortedKeys(p.object) {
		needs := withoutEffect[keyword]
		has := func(name string) bool { _, ok := p.object[name]; return ok }
		if needs != nil && !slices.ContainsFunc(needs, has) {
			m.add(p.pointer(keyword), RuleIgnored, true, "checks nothing without %s; add it, or remove %s", strings.Join(needs, " or "), keyword)
		}
	}
	if text, ok := p.object["pattern"].(string); ok {
		if plain, _ := Unslashed(text); plain != "" {
			m.add(p.pointer("pattern"), RuleContradiction, true, "the slashes are parts of the pattern, so no text matches; write %q", plain)
		}
	}
	list, _ := p.object["enum"].([]any)
	seen := map[string]int{}
	for i, v := range list {
		doc, err := json.Marshal(v)
		if err != nil {
			continue
		}
		if first, twice := seen[string(doc)]; twice {
			m.add(p.pointer("enum", strconv.Itoa(i)), RuleRepeated, true, "is also value %d of the list; remove one of the two", first)
			continue
		}
		seen[string(doc)] = i
	}
}

// slashed is a pattern as other languages write it: between slashes, with flags.
var slashed = regexp.MustCompile(`^/(.*)/([gimsuy]{0,6})$`)

// Unslashed returns the pattern and the flags of a text such as /^[A-Z]+$/i, in which the slashes cannot
// be meant: it has an anchor next to a slash, or flags. plain is empty for other texts.
func Unslashed(text string) (plain, flags string) {
	m := slashed.FindStringSubmatch(text)
	if m == nil || m[2] == "" && !strings.HasPrefix(m[1], "^") && (!strings.HasSuffix(m[1], "$") || strings.HasSuffix(m[1], `\$`)) {
		return "", ""
	}
	return m[1], m[2]
}
