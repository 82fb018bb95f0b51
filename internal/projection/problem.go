package projection

import (
	"cmp"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/schema"
)

// Rules of problems, in addition to those of the static check in protocol/schema.
const (
	// RuleVendor: the vendor is not in the table.
	RuleVendor = "unknown-vendor"
	// RuleAllOf: schemas that apply together cannot be merged.
	RuleAllOf = "all-of-not-plain"
	// RuleReference: a reference that only a validator can resolve.
	RuleReference = "unusable-reference"
	// RuleNothingFits: no value satisfies the schema.
	RuleNothingFits = "nothing-fits"
	// RuleTooLarge: expanded, the schema has too many parts.
	RuleTooLarge = "too-large"
	// RuleKeyword: a keyword the vendor does not support.
	RuleKeyword = "unknown-keyword"
	// RuleType: a place without a single type.
	RuleType = "one-type"
	// RuleEnum: an enum with values other than scalars.
	RuleEnum = "plain-enum"
	// RuleItems: an array without items.
	RuleItems = "items"
	// RuleValue: a keyword with a value that the vendor does not support.
	RuleValue = "unknown-value"
	// RuleName: a name of a property that the vendor rejects.
	RuleName = "property-name"
	// RuleDepth, RuleProperties, RuleEnumValues, RuleText, RuleOptional and RuleUnions: a limit of the vendor.
	RuleDepth      = "max-nesting-depth"
	RuleProperties = "max-properties"
	RuleEnumValues = "max-enum-values"
	RuleText       = "max-text"
	RuleOptional   = "max-optional"
	RuleUnions     = "max-unions"
	// RuleOrdering: propertyOrdering does not list each property once.
	RuleOrdering = "property-ordering"
)

// Rules of rewrites: what the vendor gets in place of the schema as written.
const (
	// RewriteDescription: a constraint becomes a sentence of the description.
	RewriteDescription = "described"
	// RewriteText: a value becomes JSON text in a string.
	RewriteText = "json-text"
	// RewriteEntries: an object becomes a list of keys and values.
	RewriteEntries = "key-value-list"
	// RewriteOthers: the unnamed members of an object become one member.
	RewriteOthers = "other-members"
	// RewriteNull: an optional member becomes required, and null stands for its absence.
	RewriteNull = "null-for-absent"
	// RewriteClosed: an object without a rule for unnamed members is closed.
	RewriteClosed = "closed-object"
	// RewriteAnyOf: oneOf becomes anyOf.
	RewriteAnyOf = "one-of-as-any-of"
	// RewriteMerged: the schemas of allOf become one.
	RewriteMerged = "all-of-merged"
	// RewriteRoot: the value becomes the member of an object.
	RewriteRoot = "wrapped-root"
	// RewriteName: a property gets another name.
	RewriteName = "renamed-property"
)

// Problem is a reason why a vendor cannot enforce a schema, or a part that is rewritten for it.
type Problem struct {
	Vendor Vendor
	// Path is a JSON pointer into the source schema.
	Path string
	// Rule is one of the Rule constants, here or in protocol/schema.
	Rule string
	// Message states what is allowed.
	Message string
}

// of returns the problem as one of a vendor.
func (p *Problem) of(v Vendor) Problem {
	out := *p
	out.Vendor = v
	return out
}

// String returns vendor, path, rule and remedy.
func (p Problem) String() string {
	return fmt.Sprintf("%s at %q: %s: %s", p.Vendor, p.Path, p.Rule, p.Message)
}

// sorted sorts problems by path and removes duplicates.
func sorted(ps []Problem) []Problem {
	slices.SortFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}

// refused are the keywords whose meaning would be lost, with an alternative. All other unknown
// keywords only make a schema narrower.
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

// refusal returns the rule and the message for a refused keyword.
func refusal(keyword string) (rule, message string) {
	rule = schema.RuleForbiddenKeyword
	if keyword == "$dynamicRef" || keyword == "$recursiveRef" {
		rule = RuleReference
	}
	return rule, fmt.Sprintf("the keyword %s has no words in a strict mode; %s", keyword, refused[keyword])
}
