// Package tally counts what the runs of a workflow do in a span of time: runs, failures, durations,
// model calls with tokens and cost, and refused answers. Tallies hold counts and names only, and can
// be added up, so that a dashboard reads a few rows and no runs. The package is pure.
package tally

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Tally is what is counted.
type Tally struct {
	Runs

	Models   map[Model]*Calls  `json:"models,omitempty"`
	Refusals map[Refusal]int64 `json:"refusals,omitempty"`
	// Errors are attempts of nodes that failed because of a provider.
	Errors map[ProviderError]int64 `json:"errors,omitempty"`
}

// Runs is what is counted of runs.
type Runs struct {
	// Created counts runs by their creation, the others by their end.
	Created   int64 `json:"n,omitempty"`
	Completed int64 `json:"ok,omitempty"`
	Failed    int64 `json:"bad,omitempty"`
	Cancelled int64 `json:"cut,omitempty"`
	// Codes are the error codes of the failed runs.
	Codes map[string]int64 `json:"codes,omitempty"`
	// Took are the durations of completed runs, from start to end.
	Took Histogram `json:"took,omitempty"`
}

// Model names a model of a provider.
type Model struct{ Provider, Model string }

// Nanos are billionths of a US dollar.
type Nanos int64

// Dollars converts an amount that is not negative. What does not fit is the largest amount.
func Dollars(usd float64) Nanos {
	switch n := math.Round(usd * 1e9); {
	case !(n > 0): // also NaN
		return 0
	case n >= math.MaxInt64:
		return math.MaxInt64
	default:
		return Nanos(n)
	}
}

// Dollars returns the amount in US dollars.
func (n Nanos) Dollars() float64 { return float64(n) / 1e9 }

// Calls is what is counted of a model.
type Calls struct {
	Calls int64 `json:"n,omitempty"`
	// Unknown counts calls without reported tokens, Priced those with a cost.
	Unknown   int64 `json:"unknown,omitempty"`
	Priced    int64 `json:"priced,omitempty"`
	Input     int64 `json:"in,omitempty"`
	Output    int64 `json:"out,omitempty"`
	Cached    int64 `json:"cached,omitempty"`
	Reasoning int64 `json:"think,omitempty"`
	// Cost is exact in Nanos, so that the order of adding does not matter.
	Cost Nanos `json:"usd,omitempty"`
	// Retries counts the calls that repeat an earlier one, RetryCost is their cost.
	Retries   int64     `json:"again,omitempty"`
	RetryCost Nanos     `json:"againUsd,omitempty"`
	Took      Histogram `json:"took,omitempty"`

	// Answers counts finished executions of nodes that called the model: First were accepted on the
	// first attempt, Corrected after a correction by the model; the others were given up.
	Answers   int64 `json:"answers,omitempty"`
	First     int64 `json:"first,omitempty"`
	Corrected int64 `json:"fixed,omitempty"`
	// Fallbacks are the answers for which the model replaced another one, Saved those of them that
	// were accepted.
	Fallbacks int64 `json:"instead,omitempty"`
	Saved     int64 `json:"saved,omitempty"`
}

// Refusal is why an answer was not accepted. Gate is empty if the answer had no document.
type Refusal struct {
	Model

	Kind, Gate, Code, Reason string
}

// ProviderError is why a call failed.
type ProviderError struct{ Provider, Code string }

// UnmarshalText decodes a key of a JSON object, as older versions stored it.
func (m *Model) UnmarshalText(b []byte) error { return split(b, &m.Provider, &m.Model) }

// UnmarshalText decodes a key of a JSON object.
func (r *Refusal) UnmarshalText(b []byte) error {
	return split(b, &r.Provider, &r.Model.Model, &r.Kind, &r.Gate, &r.Code, &r.Reason)
}

// UnmarshalText decodes a key of a JSON object.
func (e *ProviderError) UnmarshalText(b []byte) error { return split(b, &e.Provider, &e.Code) }

func split(b []byte, into ...*string) error {
	var parts []string
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != len(into) {
		return fmt.Errorf("key of %d names, want %d", len(parts), len(into))
	}
	for i, p := range parts {
		*into[i] = p
	}
	return nil
}

// maxKeys limits the names that a tally counts apart, because names come from definitions and
// models. Further ones are counted as Other.
const maxKeys = 64

// Other stands for names beyond the limit.
const Other = "other"

// slot returns the key to count under: the key itself, or other if the map is full.
func slot[K comparable, V any](in map[K]V, key, other K) K {
	if _, known := in[key]; known || len(in) < maxKeys {
		return key
	}
	return other
}

// Code counts a failed run.
func (r *Runs) Code(code string, n int64) {
	if r.Codes == nil {
		r.Codes = map[string]int64{}
	}
	r.Codes[slot(r.Codes, code, Other)] += n
}

// Of returns the counts of a model.
func (t *Tally) Of(m Model) *Calls {
	if t.Models == nil {
		t.Models = map[Model]*Calls{}
	}
	m = slot(t.Models, m, Model{Other, Other})
	c := t.Models[m]
	if c == nil {
		c = &Calls{}
		t.Models[m] = c
	}
	return c
}

// Refuse counts a refused answer.
func (t *Tally) Refuse(r Refusal, n int64) {
	if t.Refusals == nil {
		t.Refusals = map[Refusal]int64{}
	}
	other := Refusal{Model: Model{Other, Other}, Kind: Other, Gate: r.Gate}
	t.Refusals[slot(t.Refusals, r, other)] += n
}

// Err counts a failed call.
func (t *Tally) Err(e ProviderError, n int64) {
	if t.Errors == nil {
		t.Errors = map[ProviderError]int64{}
	}
	t.Errors[slot(t.Errors, e, ProviderError{Other, Other})] += n
}

// Merge adds another tally.
func (t *Tally) Merge(o *Tally) {
	t.Runs.Merge(&o.Runs)
	t.MergeModels(o)
	t.MergeRefusals(o)
	t.MergeErrors(o)
}

// Merge adds the counts of other runs.
func (r *Runs) Merge(o *Runs) {
	r.Created += o.Created
	r.Completed += o.Completed
	r.Failed += o.Failed
	r.Cancelled += o.Cancelled
	r.Took.Merge(o.Took)
	each(o.Codes, len(r.Codes), cmp.Compare[string], r.Code)
}

// MergeModels adds the counts of models.
func (t *Tally) MergeModels(o *Tally) {
	each(o.Models, len(t.Models), Model.compare, func(m Model, c *Calls) { t.Of(m).Merge(c) })
}

// MergeRefusals adds refused answers.
func (t *Tally) MergeRefusals(o *Tally) { each(o.Refusals, len(t.Refusals), Refusal.compare, t.Refuse) }

// MergeErrors adds failed calls.
func (t *Tally) MergeErrors(o *Tally) { each(o.Errors, len(t.Errors), ProviderError.compare, t.Err) }

// each calls add with the entries of a map. Unless all of them fit into a map with a number of
// entries, it does so in order: the same keys are then counted as Other each time.
func each[K comparable, V any](from map[K]V, present int, compare func(a, b K) int, add func(K, V)) {
	if present+len(from) <= maxKeys {
		for k, v := range from {
			add(k, v)
		}
		return
	}
	for _, k := range slices.SortedFunc(maps.Keys(from), compare) {
		add(k, from[k])
	}
}

func (m Model) compare(o Model) int {
	return cmp.Or(cmp.Compare(m.Provider, o.Provider), cmp.Compare(m.Model, o.Model))
}

func (r Refusal) compare(o Refusal) int {
	return cmp.Or(r.Model.compare(o.Model), cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Gate, o.Gate),
		cmp.Compare(r.Code, o.Code), cmp.Compare(r.Reason, o.Reason))
}

func (e ProviderError) compare(o ProviderError) int {
	return cmp.Or(cmp.Compare(e.Provider, o.Provider), cmp.Compare(e.Code, o.Code))
}

// Merge adds the counts of another model, or of the same one in another span.
func (c *Calls) Merge(o *Calls) {
	to, by := c.counters(), o.counters()
	for i, n := range to {
		*n = plus(*n, *by[i])
	}
	c.Took.Merge(o.Took)
}

// counters lists the counts in the order of their stored form.
func (c *Calls) counters() [15]*int64 {
	return [15]*int64{
		&c.Calls, &c.Unknown, &c.Priced, &c.Input, &c.Output, &c.Cached, &c.Reasoning, (*int64)(&c.Cost), &c.Retries, (*int64)(&c.RetryCost),
		&c.Answers, &c.First, &c.Corrected, &c.Fallbacks, &c.Saved,
	}
}

// plus adds counts that are not negative, up to the largest.
func plus(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return math.MaxInt64
}

// Grain is the width of a bucket in seconds.
type Grain int64

// The grains: each count is part of one bucket of each.
const (
	Fine   Grain = 5 * 60
	Hourly Grain = 60 * 60
	Daily  Grain = 24 * 60 * 60
)

// Grains lists the grains, the narrowest first.
var Grains = []Grain{Fine, Hourly, Daily}

// Keeps returns how long buckets of the grain are kept, in seconds; 0: always.
func (g Grain) Keeps() int64 {
	switch g {
	case Fine:
		return 3 * int64(Daily)
	case Hourly:
		return 15 * int64(Daily)
	default:
		return 0
	}
}

// Start returns the start of the bucket with a time, in Unix seconds.
func (g Grain) Start(at time.Time) int64 {
	s, width := at.Unix(), int64(g)
	start := s - s%width
	if start > s { // before 1970
		start -= width
	}
	return start
}

// Bucket is a span of time of a workflow. At is its start in Unix seconds.
type Bucket struct {
	Tenant     string
	Grain      Grain
	At         int64
	WorkflowID string
}

// Delta is what a frame of the log adds.
type Delta struct {
	// Pos is the position of the frame. It makes adding idempotent.
	Pos                uint64
	Tenant, WorkflowID string
	At                 time.Time
	Tally              Tally
}

// Ordered returns the buckets by tenant, width, time and workflow. Buckets that expire when a newer
// one begins come before it.
func Ordered(sums map[Bucket]*Tally) []Bucket {
	return slices.SortedFunc(maps.Keys(sums), func(a, b Bucket) int {
		return cmp.Or(
			cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Grain, b.Grain), cmp.Compare(a.At, b.At), cmp.Compare(a.WorkflowID, b.WorkflowID),
		)
	})
}

// Sum adds up the deltas of frames after a position, by bucket.
func Sum(deltas []Delta, after uint64) map[Bucket]*Tally {
	out := map[Bucket]*Tally{}
	add := func(b Bucket, t *Tally) {
		sum := out[b]
		if sum == nil {
			sum = &Tally{}
			out[b] = sum
		}
		sum.Merge(t)
	}
	var fine []Bucket
	for i := range deltas {
		d := &deltas[i]
		if d.Pos <= after {
			continue
		}
		b := Bucket{Tenant: d.Tenant, Grain: Fine, At: Fine.Start(d.At), WorkflowID: d.WorkflowID}
		if out[b] == nil {
			fine = append(fine, b)
		}
		add(b, &d.Tally)
	}
	for _, b := range fine {
		at, t := time.Unix(b.At, 0), out[b]
		for _, g := range Grains[1:] {
			add(Bucket{Tenant: b.Tenant, Grain: g, At: g.Start(at), WorkflowID: b.WorkflowID}, t)
		}
	}
	return out
}
