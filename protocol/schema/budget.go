package schema

import (
	"time"

	"waybill.dev/waybill/protocol/schema/internal/judge"
)

// Budget limits the checks of several documents together. It is not safe for concurrent use.
type Budget struct {
	units    int
	matching time.Duration
}

// Limits of a budget, in addition to those of each document.
const (
	// readUnits is the cost of reading a byte of a document.
	readUnits = 2
	// sharedMatching limits the time of all matches of backtracking patterns. The last one can exceed it
	// by maxMatchTime.
	sharedMatching = 100 * time.Millisecond
)

// NewBudget returns the budget of documents of a total size: enough for each of them once and for the
// most expensive one, and at most about 0.4 seconds.
func NewBudget(size int) *Budget {
	return &Budget{units: maxUnits + min(freeUnits+(byteUnits+readUnits)*size, 4*maxUnits), matching: sharedMatching}
}

// Spent reports whether the budget is used up. A nil budget never is.
func (b *Budget) Spent() bool { return b != nil && (b.units <= 0 || b.matching <= 0) }

// judge validates a document of a size, and deducts the cost.
func (b *Budget) judge(p *judge.Program, v any, size int) (judge.Verdict, []judge.Finding) {
	if b == nil {
		return p.Judge(v, units(size))
	}
	verdict, found, used := p.JudgeWithin(v, min(units(size), b.units), b.matching)
	b.units -= used.Units + readUnits*size
	b.matching -= used.Matching
	return verdict, found
}
