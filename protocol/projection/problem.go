package projection

import (
	"cmp"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/schema"
)

// Rules of problems, besides those of the static check in protocol/schema.
const (
	// RuleVendor: the vendor is not in the table.
	RuleVendor = "unknown-vendor"
	// RuleAllOf: schemas that must hold together cannot be written as one.
	RuleAllOf = "all-of-not-plain"
	// RuleReference: a reference that only a validator can follow.
	RuleReference = "unusable-reference"
	// RuleNothingFits: no value could satisfy the schema.
	RuleNothingFits = "nothing-fits"
	// RuleTooLarge: written out, the schema has too many parts.
	RuleTooLarge = "too-large"
	// RuleKeyword: a keyword the vendor does not take.
	RuleKeyword = "unknown-keyword"
	// RuleType: a place that does not say one type.
	RuleType = "one-type"
	// RuleEnum: an enum of other than plain values.
	RuleEnum = "plain-enum"
	// RuleItems: an array that does not say what it holds.
	RuleItems = "items"
	// RuleOrdering: propertyOrdering does not list each property once.
	RuleOrdering = "property-ordering"
)

// Problem is a reason why a vendor cannot be held to a schema.
type Problem struct {
	Vendor Vendor
	// Path is a JSON pointer into the schema that was given.
	Path string
	// Rule is one of the Rule constants, here or in protocol/schema.
	Rule string
	// Message says what would be right.
	Message string
}

// String names vendor, place, rule and remedy.
func (p Problem) String() string {
	return fmt.Sprintf("%s at %q: %s: %s", p.Vendor, p.Path, p.Rule, p.Message)
}

// sorted orders problems by place, and keeps one of each.
func sorted(ps []Problem) []Problem {
	slices.SortFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}

// refused are the keywords whose meaning would be lost, and with what to write
// instead. All else a vendor does not know only makes a schema narrower.
var refused = map[string]string{
	"not":              "leave it out, or list what is allowed",
	"if":               "use anyOf with one branch per case",
	"then":             "use anyOf with one branch per case",
	"else":             "use anyOf with one branch per case",
	"dependencies":     "use anyOf with one branch per case",
	"dependentSchemas": "use anyOf with one branch per case",
	"unevaluatedItems": "say it with items",
	"$dynamicRef":      "use $ref",
	"$recursiveRef":    "use $ref",
	"additionalItems":  "say it with items",
}

// refusal is the rule and the message for a refused keyword.
func refusal(keyword string) (rule, message string) {
	rule = schema.RuleForbiddenKeyword
	if keyword == "$dynamicRef" || keyword == "$recursiveRef" {
		rule = RuleReference
	}
	return rule, fmt.Sprintf("the keyword %s has no words in a strict mode; %s", keyword, refused[keyword])
}
