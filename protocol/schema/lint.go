package schema

import (
	"cmp"
	"fmt"
	"slices"
)

// Level selects the rules that Lint applies.
type Level int

const (
	// LevelAlways applies the rules for every envelope payload schema that a host serves.
	LevelAlways Level = iota
	// LevelStrict also applies the rules of strict structured-output modes, required to attest
	// tierOneSubsetCompliance "strict".
	LevelStrict
)

// Rules of the static check (OpenWOP envelope contract §20). The first three belong to LevelAlways.
const (
	RuleForbiddenKeyword     = "forbidden-keyword"
	RuleMaxNestingDepth      = "max-nesting-depth-5"
	RuleVariantDiscriminator = "variant-discriminator"
	RuleRootObject           = "root-object"
	RuleClosedObjects        = "additional-properties-false"
	RuleAllRequired          = "all-properties-required"
	RuleStringConstraint     = "no-string-constraint"
	RuleNumberConstraint     = "no-number-constraint"
	RuleArrayConstraint      = "no-array-constraint"
	RuleMaxProperties        = "max-properties-100"
	RuleRecursiveRef         = "no-recursive-ref"
	// RuleNotSchema: Compile would reject the document.
	RuleNotSchema = "not-a-schema"
)

// Vendors whose structured-output mode a finding can concern.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Gemini    = "gemini"
)

// Finding is one violation of the subset.
type Finding struct {
	// Path is a JSON pointer into the schema document.
	Path string
	// Rule is one of the Rule constants.
	Rule string
	// Message states what is allowed.
	Message string
	// Vendors lists the vendors that reject or ignore the feature; empty for a rule of the
	// protocol.
	Vendors []string
	// Warning marks a finding that may be intended.
	Warning bool
	// Unsatisfiable marks a contradiction for which no value satisfies the whole schema.
	Unsatisfiable bool
}

// forbidden maps the keywords forbidden at all levels to the vendors that reject or ignore them.
var forbidden = map[string][]string{
	"oneOf":         {OpenAI, Anthropic, Gemini},
	"allOf":         {OpenAI, Anthropic, Gemini},
	"not":           {OpenAI, Anthropic, Gemini},
	"if":            {OpenAI, Anthropic, Gemini},
	"then":          {OpenAI, Anthropic, Gemini},
	"else":          {OpenAI, Anthropic, Gemini},
	"dependencies":  {OpenAI, Anthropic, Gemini},
	"prefixItems":   {OpenAI, Anthropic},
	"propertyNames": {OpenAI, Anthropic, Gemini},
}

// maxNesting is the maximum depth of a schema position.
const maxNesting = 5

// Lint applies the Tier-1 static check to a schema document. It checks schema positions only: a
// property named "not" is not a violation. Findings are sorted by path and rule; none means the
// schema is inside the subset.
func Lint(doc []byte, level Level) []Finding {
	d, err := parse(doc, maxWeight)
	if err != nil {
		return []Finding{{Path: d.source.Source(err.Path), Rule: RuleNotSchema, Message: err.Reason}}
	}
	l := linter{refs: newReferences(d.value), tags: map[int][]string{}}
	unions := l.refs.unions()
	for _, p := range l.refs.positions {
		l.keywords(p)
		l.nesting(p)
		l.variants(p, unions[p.index])
		if level >= LevelStrict {
			l.strict(p)
		}
	}
	if level >= LevelStrict {
		l.whole()
	}
	for i := range l.findings {
		l.findings[i].Path = d.source.Source(l.findings[i].Path)
	}
	slices.SortFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return l.findings
}

// linter collects the findings of one document.
type linter struct {
	refs     *references
	tags     map[int][]string // discriminators, by position
	findings []Finding
}

func (l *linter) report(path, rule, message string, vendors ...string) {
	l.findings = append(l.findings, Finding{Path: path, Rule: rule, Message: message, Vendors: vendors})
}

func (l *linter) keywords(p *position) {
	for keyword, vendors := range forbidden {
		if _, ok := p.object[keyword]; ok {
			l.report(p.pointer(keyword), RuleForbiddenKeyword, "the keyword "+keyword+" is outside the subset; "+instead(keyword), vendors...)
		}
	}
}

// instead returns the alternative to a forbidden keyword.
func instead(keyword string) string {
	switch keyword {
	case "oneOf":
		return "use anyOf with a discriminator"
	case "allOf":
		return "write the members out"
	case "if", "then", "else", "dependencies":
		return "use anyOf with one branch per case"
	case "prefixItems":
		return "use an object with named members"
	default:
		return "leave it out"
	}
}

// nesting reports only the first step beyond the maximum depth.
func (l *linter) nesting(p *position) {
	if p.step && p.depth == maxNesting+1 {
		l.report(p.pointer(), RuleMaxNestingDepth,
			fmt.Sprintf("nested deeper than %d steps of properties, items, anyOf and $defs; flatten the schema", maxNesting))
	}
}
