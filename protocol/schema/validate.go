package schema

import (
	"cmp"
	"errors"
	"slices"

	"waybill.dev/waybill/protocol/schema/internal/judge"
	"waybill.dev/waybill/protocol/strictjson"
)

// Limits of a document to validate. Callers apply narrower size limits first.
const (
	maxDocumentBytes = 4 << 20
	maxDocumentDepth = 128
	maxViolations    = 32
)

// The budget of a document, in units of about ten nanoseconds: a fixed part and a part per byte, up
// to about 40 ms. A schema that evaluates every value a few times stays far below; one that
// multiplies its work does not.
const (
	freeUnits = 1 << 18
	byteUnits = 16
	maxUnits  = 4 << 20
)

// units returns the budget for a document of a size.
func units(size int) int { return min(freeUnits+byteUnits*size, maxUnits) }

// Keywords of violations without a keyword of the schema.
const (
	// KeywordJSON: the document is not valid JSON.
	KeywordJSON = "json"
	// KeywordNumber: a number too long or too large to compare.
	KeywordNumber = "number"
	// KeywordBudget: the document would cause too many checks.
	KeywordBudget = "budget"
)

// Violation is one error in a document.
type Violation struct {
	// InstancePath is a JSON pointer to the offending value. It repeats member
	// names of the document.
	InstancePath string
	// SchemaPath is a JSON pointer to the keyword in the schema.
	SchemaPath string
	// Keyword is the keyword that failed, or one of the Keyword constants.
	Keyword string
	// Message states what is allowed, in terms of the schema only. It never repeats a value or a
	// member name of the document, so that it carries no secret and no injected text (OpenWOP
	// envelope contract §26 case 15).
	Message string
}

// Validate applies the schema to a JSON document. Numbers are compared exactly, regardless of their
// size; 1.0 is an integer. The result is nil if the document is valid. Otherwise it holds at most
// 32 violations, sorted by path: the innermost causes, and of a union only those of the branch that
// the document most likely means. The document's size alone limits the cost.
func (s *Schema) Validate(doc []byte) []Violation { return s.ValidateWithin(doc, nil) }

// ValidateWithin is Validate for one of several documents that share a budget; nil for a budget of its
// own. A document that the budget does not suffice for has a violation of KeywordBudget.
func (s *Schema) ValidateWithin(doc []byte, b *Budget) []Violation {
	if b.Spent() {
		return []Violation{{Keyword: KeywordBudget, Message: overBudget}}
	}
	v, err := strictjson.Value(doc, strictjson.Limits{MaxBytes: maxDocumentBytes, MaxDepth: maxDocumentDepth})
	if err != nil {
		e := notJSON(err)
		return []Violation{{InstancePath: e.Path, Keyword: KeywordJSON, Message: e.Reason}}
	}
	if path, found := findHugeNumber(v); found {
		return []Violation{{InstancePath: path, Keyword: KeywordNumber, Message: hugeNumber}}
	}
	switch verdict, found := b.judge(s.program, v, len(doc)); {
	case verdict == judge.Holds:
		return nil
	case verdict == judge.Exhausted, len(found) == 0:
		return []Violation{{Keyword: KeywordBudget, Message: overBudget}}
	default:
		vs := finish(found)
		for i := range vs {
			vs[i].SchemaPath = s.source.Source(vs[i].SchemaPath)
		}
		return vs
	}
}

const overBudget = "the document would take too many checks; make it smaller or nest it less"

// notJSON converts path and reason of an error of strictjson.
func notJSON(err error) *Error {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return &Error{Path: e.Path, Reason: e.Reason}
	}
	return &Error{Reason: err.Error()}
}

// finish sorts, removes duplicates, and truncates.
func finish(found []judge.Finding) []Violation {
	vs := make([]Violation, len(found))
	for i, f := range found {
		vs[i] = Violation{InstancePath: f.Place, SchemaPath: f.SchemaPlace, Keyword: f.Keyword, Message: f.Message}
	}
	slices.SortFunc(vs, func(a, b Violation) int {
		return cmp.Or(
			cmp.Compare(a.InstancePath, b.InstancePath),
			cmp.Compare(a.SchemaPath, b.SchemaPath),
			cmp.Compare(a.Keyword, b.Keyword),
			cmp.Compare(a.Message, b.Message))
	})
	type said struct{ path, message string }
	seen := map[said]bool{}
	vs = slices.DeleteFunc(vs, func(v Violation) bool {
		again := seen[said{v.InstancePath, v.Message}]
		seen[said{v.InstancePath, v.Message}] = true
		return again
	})
	return vs[:min(len(vs), maxViolations)]
}
