package store

import (
	"context"
	"math"

	"waybill.dev/waybill/protocol/wire"
)

// Facts are the columns of a run that lists show and sort by. They follow from the run's events, as
// the rest of its row does.
type Facts struct {
	// Known is false in rows of an older version until FillFacts.
	Known bool
	// Model is the model of the last call, LastNode the node of the last event of a node; empty if
	// none.
	Model, LastNode string
	// TokensIn and TokensOut are nil without a model call, Cost is nil unless a price is known. Cost
	// is in US dollars.
	TokensIn, TokensOut *int64
	Cost                *float64
	// DurationMs is the time from the start to the end; nil unless the run has both.
	DurationMs *int64
	// WaitingSince is the start of a wait for a person or another system, in wire.TimeLayout; empty
	// if there is none.
	WaitingSince string
	// Inputs is a preview of the run's inputs, redacted as in the log.
	Inputs string
}

// Tokens returns the sum of the tokens; nil without a model call.
func (f *Facts) Tokens() *int64 {
	if f.TokensIn == nil || f.TokensOut == nil {
		return nil
	}
	sum := *f.TokensIn + *f.TokensOut
	if *f.TokensIn > 0 && *f.TokensOut > 0 && sum < 0 {
		sum = math.MaxInt64
	}
	return &sum
}

// Sort is the value by which a list is ordered. Runs without the value follow those that have it,
// newest first.
type Sort string

// The values to sort by.
const (
	SortCreated  Sort = "" // the creation time
	SortModel    Sort = "model"
	SortNode     Sort = "lastNode"
	SortTokens   Sort = "tokens"
	SortCost     Sort = "cost"
	SortDuration Sort = "duration"
	SortWaiting  Sort = "waitingSince"
)

// Sorts lists the values other than the creation time.
func Sorts() []Sort {
	return []Sort{SortModel, SortNode, SortTokens, SortCost, SortDuration, SortWaiting}
}

// Column returns the column of a value in tables; empty for the creation time.
func (s Sort) Column() string {
	switch s {
	case SortModel:
		return "model"
	case SortNode:
		return "last_node"
	case SortTokens:
		return "tokens"
	case SortCost:
		return "cost"
	case SortDuration:
		return "duration_ms"
	case SortWaiting:
		return "waiting_since"
	default:
		return ""
	}
}

// PlaceOf returns the position of a row in a list that is ordered by s.
func PlaceOf(r *Run, s Sort) Place {
	p := Place{CreatedAt: r.CreatedAt, RunID: r.RunID}
	switch f := &r.Facts; s {
	case SortModel:
		p.Value = textValue(f.Model)
	case SortNode:
		p.Value = textValue(f.LastNode)
	case SortWaiting:
		p.Value = textValue(f.WaitingSince)
	case SortTokens:
		p.Value = numberValue(f.Tokens())
	case SortDuration:
		p.Value = numberValue(f.DurationMs)
	case SortCost:
		p.Value = numberValue(f.Cost)
	}
	return p
}

func textValue(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func numberValue[T int64 | float64](n *T) any {
	if n == nil {
		return nil
	}
	return *n
}

// Part is a part of a list.
type Part int

// The parts of a list. A list by creation time has only PartAll. Any other one has the runs with the
// value, in its order, and then those without it, newest first.
const (
	PartAll Part = iota
	PartWith
	PartWithout
)

// ListParts returns a page from the parts of a list.
func ListParts(q Query, list func(q Query, part Part) ([]Run, error)) ([]Run, error) {
	if q.Sort == SortCreated {
		return list(q, PartAll)
	}
	var page []Run
	if q.After.Value != nil || q.After == (Place{}) {
		var err error
		if page, err = list(q, PartWith); err != nil || len(page) == q.Limit {
			return page, err
		}
		q.After = Place{}
	}
	q.Limit -= len(page)
	q.Ascending = false
	rest, err := list(q, PartWithout)
	return append(page, rest...), err
}

// FactsWriter adds facts to rows of an older version. It may be used next to a Writer.
type FactsWriter interface {
	// WithoutFacts returns up to limit rows of all tenants whose facts are not known.
	WithoutFacts(ctx context.Context, limit int) ([]Run, error)
	// FillFacts stores the facts and the marks of runs. A run that has moved since its row was read, or
	// that was erased, is left as it is.
	FillFacts(ctx context.Context, rows []Run, marks []Mark) error
}

// Counts is the number of runs per status.
type Counts struct {
	ByStatus map[wire.Status]int
	// Complete is false if the query matches more runs than were counted: numbers are lower bounds.
	Complete bool
}

// Counter counts runs.
type Counter interface {
	// Count counts the runs that match the query; its status, order, limit and place are ignored. With
	// times as the only filters, it counts up to limit runs of each status, otherwise those of the
	// newest limit runs.
	Count(ctx context.Context, q Query, limit int) (Counts, error)
}

// CountsEach reports whether a count of the query reads the runs of each status, by its index.
func (q Query) CountsEach() bool {
	q.Status, q.Sort, q.Ascending, q.After, q.Limit = "", SortCreated, false, Place{}, 0
	return q == Query{Tenant: q.Tenant, Since: q.Since, Until: q.Until}
}

// NewCounts adds up the counts of statuses that were read with a limit of one more than to count.
func NewCounts(found map[wire.Status]int, each bool, limit int) Counts {
	out, total := Counts{ByStatus: map[wire.Status]int{}, Complete: true}, 0
	for status, n := range found {
		if each && n > limit {
			n, out.Complete = limit, false
		}
		if total += n; n > 0 {
			out.ByStatus[status] = n
		}
	}
	out.Complete = out.Complete && (each || total <= limit)
	return out
}
