package schema

import (
	"cmp"
	"errors"
	"slices"

	"waybill.dev/waybill/protocol/schema/internal/judge"
	"waybill.dev/waybill/protocol/strictjson"
)

// Bounds of a document to validate. Size limits of the caller come first and are
// narrower.
const (
	maxDocumentBytes = 4 << 20
	maxDocumentDepth = 128
	maxViolations    = 32
)

// What a document may take, in steps of some ten nanoseconds: something for a start,
// and something for each byte, up to some 40 ms. A schema that looks at every value a few
// times stays far below, one that multiplies its work does not.
const (
	freeUnits = 1 << 18
	byteUnits = 16
	maxUnits  = 4 << 20
)

// units is what a document of a size may take.
func units(size int) int { return min(freeUnits+byteUnits*size, maxUnits) }

// Keywords of violations that no keyword of the schema causes.
const (
	// KeywordJSON: the document is not sound JSON.
	KeywordJSON = "json"
	// KeywordNumber: a number too long or too large to compare.
	KeywordNumber = "number"
	// KeywordBudget: the document would cause too many checks.
	KeywordBudget = "budget"
)

// Violation is one thing that is wrong with a document.
type Violation struct {
	// InstancePath is a JSON pointer to the offending value. It repeats member
	// names of the document.
	InstancePath string
	// SchemaPath is a JSON pointer to the keyword in the schema.
	SchemaPath string
	// Keyword is the keyword that failed, or one of the Keyword constants.
	Keyword string
	// Message says what would be right, with facts of the schema only. It never
	// repeats a value or a member name of the document, so that no secret and no
	// injected text travels in it (OpenWOP envelope contract §26 case 15).
	Message string
}

// Validate applies the schema to a JSON document. Numbers are compared exactly,
// whatever their size; 1.0 is an integer. The result is nil if the document is
// valid, else sorted by place and at most 32 long: the innermost causes, and of
// a union only the branch the document seems to mean. What it takes is bounded by the
// size of the document alone.
func (s *Schema) Validate(doc []byte) []Violation {
	v, err := strictjson.Value(doc, strictjson.Limits{MaxBytes: maxDocumentBytes, MaxDepth: maxDocumentDepth})
	if err != nil {
		e := notJSON(err)
		return []Violation{{InstancePath: e.Path, Keyword: KeywordJSON, Message: e.Reason}}
	}
	if path, found := findHugeNumber(v); found {
		return []Violation{{InstancePath: path, Keyword: KeywordNumber, Message: hugeNumber}}
	}
	switch verdict, found := s.program.Judge(v, units(len(doc))); {
	case verdict == judge.Holds:
		return nil
	case verdict == judge.Exhausted, len(found) == 0:
		return []Violation{{Keyword: KeywordBudget, Message: "the document would take too many checks; make it smaller or nest it less"}}
	default:
		return finish(found)
	}
}

// notJSON carries place and reason over from strictjson.
func notJSON(err error) *Error {
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		return &Error{Path: e.Path, Reason: e.Reason}
	}
	return &Error{Reason: err.Error()}
}

// finish sorts, drops what is said twice, and caps.
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
