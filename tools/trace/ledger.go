package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ledger lists the rules that the host follows, with code and tests.
type ledger struct {
	Contract string `yaml:"contract"` // source of the rules, for readers
	// Sections are the parts of the contract in which every binding line needs a rule.
	Sections []string `yaml:"sections"`
	// Rows are the sections in which every table row is an obligation, also without a MUST.
	Rows []string `yaml:"rows"`
	// Tags are marks that make any line of the sections an obligation, such as that of
	// a decision.
	Tags []string `yaml:"tags"`
	// Required are places that must each have a rule, such as numbered cases.
	Required []string `yaml:"required"`
	Rules    []rule   `yaml:"rules"`
}

// rule is one promise of the host.
type rule struct {
	At   string `yaml:"at"`   // section of the contract, with the number of a row if it has one: 26.7
	Rule string `yaml:"rule"` // in plain words
	// Says are phrases of the covered lines of the contract, just long enough to identify them.
	Says list `yaml:"says"`
	Code list `yaml:"code"` // path, or path#Name
	Test list `yaml:"test"` // package folder#TestName, or package folder#TestName/subtest
	// Absent is the reason why the host has no code for the rule: another party's duty, or a
	// feature that does not exist and is not advertised.
	Absent string `yaml:"absent"`
}

// list is one entry, or several.
type list []string

// UnmarshalYAML accepts a single entry as a list of one.
func (l *list) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*l = list{n.Value}
		return nil
	}
	return n.Decode((*[]string)(l))
}

// parseLedger parses a ledger and rejects unknown members.
func parseLedger(doc []byte) (*ledger, error) {
	l := &ledger{}
	d := yaml.NewDecoder(bytes.NewReader(doc))
	d.KnownFields(true)
	if err := d.Decode(l); err != nil {
		return nil, err
	}
	if len(l.Rules) == 0 {
		return nil, errors.New("has no rules")
	}
	return l, nil
}

// holes returns the rules without code or test, and the references without a target.
func (l *ledger) holes(src *sources) []string {
	var out []string
	at := map[string]bool{}
	seen := map[string]bool{}
	for _, r := range l.Rules {
		at[r.At], at[l.section(r.At)] = true, true
		name := fmt.Sprintf("§%s %q", r.At, r.Rule)
		if seen[name] {
			out = append(out, name+": duplicate rule")
		}
		seen[name] = true
		for _, problem := range r.problems(src) {
			out = append(out, name+": "+problem)
		}
	}
	for _, want := range append(append([]string(nil), l.Sections...), l.Required...) {
		if !at[want] {
			out = append(out, "§"+want+": no rule")
		}
	}
	return out
}

// problems returns the problems of one rule.
func (r rule) problems(src *sources) []string {
	var out []string
	if r.At == "" || r.Rule == "" {
		out = append(out, "needs a place (at) and words (rule)")
	}
	if r.Absent == "" && (len(r.Code) == 0 || len(r.Test) == 0) {
		out = append(out, "needs code and test, or a reason why it is absent")
	}
	if r.Absent != "" && len(r.Code) > 0 {
		out = append(out, "has code and is marked absent")
	}
	for _, c := range r.Code {
		if err := src.hasCode(c); err != nil {
			out = append(out, err.Error())
		}
	}
	for _, t := range r.Test {
		if err := src.hasTest(t); err != nil {
			out = append(out, err.Error())
		}
	}
	return out
}

// absent counts the rules without code.
func (l *ledger) absent() int {
	n := 0
	for _, r := range l.Rules {
		if r.Absent != "" {
			n++
		}
	}
	return n
}

// section returns the contract section of a place: the longest listed prefix.
func (l *ledger) section(at string) string {
	best := ""
	for _, s := range l.Sections {
		if (at == s || strings.HasPrefix(at, s+".")) && len(s) > len(best) {
			best = s
		}
	}
	return best
}
