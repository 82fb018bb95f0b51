package schema

import (
	"cmp"
	"fmt"
	"slices"
)

// Level chooses how much of the Tier-1 static check Lint applies.
type Level int

const (
	// LevelAlways applies the rules that hold for every schema a host serves for
	// envelope payloads.
	LevelAlways Level = iota
	// LevelStrict also applies what strict structured-output modes demand, needed to
	// attest tierOneSubsetCompliance "strict".
	LevelStrict
)

// Rules of the static check (OpenWOP envelope contract §20). The first three
// belong to LevelAlways.
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
	// RuleNotSchema: the document is not one that Compile would read at all.
	RuleNotSchema = "not-a-schema"
)

// Vendors whose structured-output mode a finding can concern.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Gemini    = "gemini"
)

// Finding is one place where a schema leaves the subset.
type Finding struct {
	// Path is a JSON pointer into the schema document.
	Path string
	// Rule is one of the Rule constants.
	Rule string
	// Message says what would be right.
	Message string
	// Vendors lists whose structured-output mode rejects or ignores the feature;
	// empty when the rule is the protocol's own.
	Vendors []string
}

// forbidden maps the keywords no level allows to the vendors that refuse or drop
// them.
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

// maxNesting is the deepest a schema position may lie.
const maxNesting = 5

// Lint applies the Tier-1 static check to a schema document. It looks at schema
// positions only: a property named "not" is no violation. Findings are sorted by
// path and rule; none means the schema is inside the subset.
func Lint(doc []byte, level Level) []Finding {
	v, _, err := parse(doc, maxWeight)
	if err != nil {
		return []Finding{{Path: err.Path, Rule: RuleNotSchema, Message: err.Reason}}
	}
	l := linter{refs: newReferences(v), tags: map[int][]string{}}
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
	slices.SortFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return l.findings
}

// linter gathers the findings of one document.
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

// instead names the way out of a forbidden keyword.
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

// nesting reports the first step beyond the depth, not all that lies below.
func (l *linter) nesting(p *position) {
	if p.step && p.depth == maxNesting+1 {
		l.report(p.pointer(), RuleMaxNestingDepth,
			fmt.Sprintf("nested deeper than %d steps of properties, items, anyOf and $defs; flatten the schema", maxNesting), OpenAI)
	}
}
