package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// obligation is a line of the contract that the host must follow.
type obligation struct {
	section string
	line    int // from 1
	text    string
}

var (
	heading = regexp.MustCompile(`^#{2,3} ([0-9]+(?:\.[0-9]+)?)\.?\s`)
	binding = regexp.MustCompile(`\b(MUST|SHALL)\b`)
	ruling  = regexp.MustCompile(`^\|[\s:|-]+\|$`) // the line below a table's head
)

// obligations returns the binding lines of the ledger's sections: those with a MUST, a SHALL or one
// of its tags, and every table row where the ledger says so.
func obligations(contract string, l *ledger) []obligation {
	var out []obligation
	section, inTable := "", false
	for i, text := range strings.Split(contract, "\n") {
		if m := heading.FindStringSubmatch(text); m != nil {
			section = m[1]
		}
		row := strings.HasPrefix(text, "|")
		head := row && !inTable
		inTable = row
		if head || ruling.MatchString(text) || !slices.Contains(l.Sections, section) {
			continue
		}
		if binding.MatchString(text) || l.tagged(text) || row && slices.Contains(l.Rows, section) {
			out = append(out, obligation{section: section, line: i + 1, text: text})
		}
	}
	return out
}

// tagged reports whether a line has one of the ledger's tags.
func (l *ledger) tagged(text string) bool {
	return slices.ContainsFunc(l.Tags, func(tag string) bool { return strings.Contains(text, tag) })
}

// unanswered returns the obligations without a rule, and the phrases of rules that match no line.
func (l *ledger) unanswered(obligations []obligation) []string {
	var out []string
	for _, o := range obligations {
		if !slices.ContainsFunc(l.Rules, func(r rule) bool { return l.answers(r, o) }) {
			out = append(out, fmt.Sprintf("§%s line %d of the contract has no rule: %s", o.section, o.line, o.text))
		}
	}
	for _, r := range l.Rules {
		for _, phrase := range r.Says {
			found := slices.ContainsFunc(obligations, func(o obligation) bool {
				return o.section == l.section(r.At) && strings.Contains(o.text, phrase)
			})
			if !found {
				out = append(out, fmt.Sprintf("§%s %q: no line of the section says %q", r.At, r.Rule, phrase))
			}
		}
	}
	return out
}

// answers reports whether the rule covers the line.
func (l *ledger) answers(r rule, o obligation) bool {
	return l.section(r.At) == o.section && slices.ContainsFunc(r.Says, func(phrase string) bool {
		return strings.Contains(o.text, phrase)
	})
}
