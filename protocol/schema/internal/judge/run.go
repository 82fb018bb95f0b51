package judge

import (
	"math/bits"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Prices of steps. One unit is about ten nanoseconds.
const (
	visitPrice  = 4
	memberPrice = 2
	// textShare and patternShare are the bytes of text, and the states of a regular expression, per
	// unit.
	textShare    = 16
	patternShare = 2
)

// Limits of one run.
const (
	// maxFrames limits nested applications of schemas. References count at each level of the
	// document.
	maxFrames = 4096
	// maxFindings limits the returned findings, maxMade all recorded ones: those of a branch are
	// dropped when another branch matches.
	maxFindings = 64
	maxMade     = 2048
)

// Verdict is the result of a validation.
type Verdict int

// The verdicts. Exhausted: the budget was used up first.
const (
	Holds Verdict = iota
	Fails
	Exhausted
)

// Judge validates v, for at most units, twice that if it does not match. The findings are the
// innermost causes, or some of them if there are many; there may be none. The result does not
// depend on the order of members in memory.
func (p *Program) Judge(v any, units int) (Verdict, []Finding) {
	verdict, found, _ := p.JudgeWithin(v, units, maxMatching)
	return verdict, found
}

// Cost is what a validation used.
type Cost struct {
	Units    int
	Matching time.Duration
}

// JudgeWithin is Judge with a limit for the time of all bounded matches. It returns the cost.
func (p *Program) JudgeWithin(v any, units int, matching time.Duration) (Verdict, []Finding, Cost) {
	quick := run{program: p, left: units, maxMatching: matching, quiet: 1}
	ok := quick.in(p.root, v, nil)
	used := Cost{units - quick.left, quick.matching}
	switch {
	case quick.spent:
		return Exhausted, nil, used
	case ok:
		return Holds, nil, used
	}
	r := run{program: p, left: units, maxMatching: matching - quick.matching}
	r.in(p.root, v, nil)
	used = Cost{used.Units + units - r.left, used.Matching + r.matching}
	if len(r.causes) == 0 && r.spent {
		return Exhausted, nil, used
	}
	return Fails, r.findings(), used
}

// run applies schemas to a value and everything in it.
type run struct {
	program *Program
	left    int  // units
	spent   bool // units used up: later causes do not count
	// matching is the time of bounded matches, maxMatching its limit.
	matching, maxMatching time.Duration
	// quiet: causes are not recorded.
	quiet int
	// trying: causes may be dropped, as in a branch of a union.
	trying int
	frames []frame
	path   []Token
	names  []string // names of the objects being validated, each sorted
	causes []cause
	made   int
	hashes []uint64 // hashes of a list and their slots, reused
	slots  []int32
}

// frame is a schema being applied, and its depth in the document.
type frame struct {
	schema *jsonschema.Schema
	depth  int
}

// pay deducts units from the budget; false if they do not suffice.
func (r *run) pay(units int) bool {
	if r.left -= units; r.left < 0 {
		r.spent = true
	}
	return !r.spent
}

// over reports whether the result is settled after a keyword matched or not.
func (r *run) over(ok bool) bool {
	return r.spent || !ok && (r.quiet > 0 || r.trying == 0 && len(r.causes) >= maxFindings)
}

// in applies a schema at the current position. open, if not nil, holds what no keyword has
// evaluated yet; if s matches, what s evaluates is removed.
func (r *run) in(s *jsonschema.Schema, v any, open *unevaluated) bool {
	if s.Bool != nil {
		return r.pay(1) && (*s.Bool || r.fails(s, forbidden))
	}
	if !r.pay(visitPrice) {
		return false
	}
	if r.circles(s) {
		return r.fails(s, circular)
	}
	if len(r.frames) >= maxFrames {
		r.spent = true
		return false
	}
	r.frames = append(r.frames, frame{s, len(r.path)})
	own := r.unevaluatedBy(s, v, !open.empty())
	ok := r.applied(s, v, own)
	r.frames = r.frames[:len(r.frames)-1]
	if ok && !open.empty() {
		r.merge(open, own)
	}
	return ok && !r.spent
}

// below applies a schema to a member or an item.
func (r *run) below(s *jsonschema.Schema, v any, at Token) bool {
	if s.Bool != nil && *s.Bool {
		return r.pay(1)
	}
	r.path = append(r.path, at)
	ok := r.in(s, v, nil)
	r.path = r.path[:len(r.path)-1]
	return ok
}

// circles reports whether s is already being applied to the same value.
func (r *run) circles(s *jsonschema.Schema) bool {
	for i := len(r.frames) - 1; i >= 0 && r.frames[i].depth == len(r.path); i-- {
		if r.frames[i].schema == s {
			return true
		}
		if !r.pay(1) {
			return false
		}
	}
	return false
}

// applied applies the keywords of s. After a failed type, const or enum, further causes would not
// help.
func (r *run) applied(s *jsonschema.Schema, v any, own *unevaluated) bool {
	if !r.isType(s, v) || !r.isListed(s, v) || !r.isFormatted(s, v) {
		return false
	}
	ok := s.Ref == nil || r.in(s.Ref, v, own)
	if r.over(ok) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		ok = r.object(s, v, own) && ok
	case []any:
		ok = r.array(s, v, own) && ok
	case string:
		ok = r.text(s, v) && ok
	default:
		ok = r.numeric(s, v) && ok
	}
	if r.over(ok) {
		return false
	}
	ok = r.inPlace(s, v, own) && ok
	if r.over(ok) || own.empty() {
		return ok
	}
	return r.leftOver(s, v, own) && ok
}

// sorted appends an object's names in order to those in use, and returns their start. The caller
// truncates them again.
func (r *run) sorted(object map[string]any) (from int) {
	from = len(r.names)
	if !r.pay(len(object) * (1 + bits.Len(uint(len(object)))/2)) {
		return from
	}
	for name := range object {
		r.names = append(r.names, name)
	}
	slices.Sort(r.names[from:])
	return from
}
