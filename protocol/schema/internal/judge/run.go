package judge

import (
	"math/bits"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Prices of steps. One unit is some ten nanoseconds.
const (
	visitPrice  = 4
	memberPrice = 2
	// textShare and patternShare are how many bytes of a text are looked at, and how
	// many states of a regular expression are gone through, for a unit.
	textShare    = 16
	patternShare = 2
)

// Bounds of one run.
const (
	// maxFrames bounds how many schemas may be applied within each other. References
	// that follow each other count for each level of the document.
	maxFrames = 4096
	// maxFindings are kept in the end, and maxMade are made at all: those of a branch
	// are dropped when another one fits.
	maxFindings = 64
	maxMade     = 2048
)

// Verdict is what is known of a value.
type Verdict int

// The verdicts. Exhausted: the budget ended before it was known.
const (
	Holds Verdict = iota
	Fails
	Exhausted
)

// Judge tells whether v satisfies the schema, at the price of units at most, twice if
// it does not. The findings are the innermost causes, some of them if there are very
// many; there may be none. The same schema and value give the same, whatever the
// order of members in memory.
func (p *Program) Judge(v any, units int) (Verdict, []Finding) {
	quick := run{program: p, left: units, quiet: 1}
	switch ok := quick.in(p.root, v, nil); {
	case quick.spent:
		return Exhausted, nil
	case ok:
		return Holds, nil
	}
	r := run{program: p, left: units}
	r.in(p.root, v, nil)
	if len(r.causes) == 0 && r.spent {
		return Exhausted, nil
	}
	return Fails, r.findings()
}

// run applies schemas to a value and all below it.
type run struct {
	program *Program
	left    int  // units
	spent   bool // they were too few: whatever was found since does not count
	// quiet: it matters whether a schema holds, not why it does not.
	quiet int
	// trying: what is found may be taken back, as in a branch of a union.
	trying int
	frames []frame
	path   []Token
	names  []string // of the objects that are being looked at, each in order
	causes []cause
	made   int
	hashes []uint64 // of a list, and where they lie; used again
	slots  []int32
}

// frame is a schema that is being applied, and how deep in the document.
type frame struct {
	schema *jsonschema.Schema
	depth  int
}

// pay takes units off the budget; false if they are too few.
func (r *run) pay(units int) bool {
	if r.left -= units; r.left < 0 {
		r.spent = true
	}
	return !r.spent
}

// over reports that nothing more can be learned after a keyword held or not.
func (r *run) over(ok bool) bool {
	return r.spent || !ok && (r.quiet > 0 || r.trying == 0 && len(r.causes) >= maxFindings)
}

// in applies a schema where the run stands. open, if not nil, is what other keywords
// have not looked at yet; what s looks at is taken off if it holds.
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

// circles reports that s is being applied to the same value already.
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

// applied goes through the keywords of s. Those that say what a value is end it:
// nothing else would be worth saying.
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

// sorted puts the names of an object in order behind those in use, and gives the
// place where they begin. The caller cuts them off.
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
