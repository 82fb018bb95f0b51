package workflow

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
)

// Rules of a Problem, in addition to the keywords of JSON Schema.
const (
	RuleJSON = "json"
	// RuleUnknownMember is about a member that is not known where it is, as in JSON Schema.
	RuleUnknownMember = "additionalProperties"
	RuleUnique        = "unique"
	RuleReference     = "reference"
	RuleCycle         = "cycle"
	RuleCondition     = "condition"
	RuleRegex         = "regex"
	RuleValueType     = "value-type"
	RuleSchema        = "schema"
	RuleRequired      = "required"
	RuleExclusive     = "exclusive"
	RuleMaxRetries    = "max-retries"
	RuleContract      = "envelope-contract"
	RuleChannel       = "channel"
	RuleRetry         = "retry"
	RuleTimeout       = "timeout"
	RuleCapability    = "capability"
	// RuleQuestions is about settings.questions.
	RuleQuestions = "questions"
	// RuleUnknownOutcome is about settings.onUnknownOutcome.
	RuleUnknownOutcome = "unknown-outcome"
	RuleSchedule       = "schedule"
	RuleRetention      = "retention"
	RuleMaxLength      = "maxLength"
)

// maxProblems limits the problems that Parse reports.
const maxProblems = 64

// Problem is one error in a definition or in the inputs of a run.
type Problem struct {
	// Path is a JSON pointer to the offending value or member.
	Path string
	// Rule names the check: a keyword of JSON Schema or a Rule constant.
	Rule string
	// Message states what is wrong and what is allowed.
	Message string
}

// AsDetails renders problems for the details of an error envelope.
func AsDetails(ps []Problem) []map[string]any {
	details := make([]map[string]any, len(ps))
	for i, p := range ps {
		details[i] = map[string]any{"path": p.Path, "rule": p.Rule, "message": p.Message}
	}
	return details
}

// problems collects the problems of one document.
type problems []Problem

func (ps *problems) add(path, rule, message string) {
	*ps = append(*ps, Problem{Path: path, Rule: rule, Message: message})
}

// violations adds the violations of a schema by a document, below a path.
func (ps *problems) violations(below string, s *schema.Schema, doc []byte) {
	*ps = append(*ps, Violations(below, s, doc)...)
}

// Violations returns the violations of a schema by a document, as problems below a path.
func Violations(below string, s *schema.Schema, doc []byte) []Problem {
	var out []Problem
	for _, v := range s.Validate(doc) {
		rule := v.Keyword
		if v.UnknownMember() {
			rule = RuleUnknownMember
		}
		out = append(out, Problem{Path: below + v.InstancePath, Rule: rule, Message: s.Explain(v, doc)})
	}
	return out
}

// drop removes the problems of a rule, and reports whether there were any.
func (ps *problems) drop(rule string) bool {
	had := len(*ps)
	*ps = slices.DeleteFunc(*ps, func(p Problem) bool { return p.Rule == rule })
	return len(*ps) < had
}

// touch reports whether there is a problem at or below path.
func (ps problems) touch(path string) bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Path == path || strings.HasPrefix(p.Path, path+"/") })
}

// sorted returns the problems to report, sorted by path.
func (ps problems) sorted() []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return ps[:min(len(ps), maxProblems)]
}

// pointer encodes a JSON pointer; tokens are strings or indexes.
func pointer(tokens ...any) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		switch t := t.(type) {
		case int:
			b.WriteString(strconv.Itoa(t))
		case string:
			b.WriteString(jsonpointer.Escape(t))
		}
	}
	return b.String()
}
