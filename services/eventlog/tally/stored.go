package tally

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
)

// The stored form of a tally is a byte with its version, and then numbers as varints and texts with
// their lengths before them. A dashboard decodes thousands of them, and JSON takes ten times as long.
const storedVersion = 1

// errStored: bytes are no stored tally.
var errStored = errors.New("not a stored tally")

// AppendStored appends the stored form. The same counts have the same form.
func AppendStored(to []byte, t *Tally) []byte {
	to = append(to, storedVersion)
	for _, n := range []int64{t.Created, t.Completed, t.Failed, t.Cancelled} {
		to = appendNumber(to, n)
	}
	to = appendHistogram(to, t.Took)
	to = appendEach(to, t.Codes, cmp.Compare[string], func(to []byte, code string, n int64) []byte {
		return appendNumber(appendTexts(to, code), n)
	})
	to = appendEach(to, t.Models, Model.compare, func(to []byte, m Model, c *Calls) []byte {
		to = appendTexts(to, m.Provider, m.Model)
		for _, n := range c.counters() {
			to = appendNumber(to, *n)
		}
		return appendHistogram(to, c.Took)
	})
	to = appendEach(to, t.Refusals, Refusal.compare, func(to []byte, r Refusal, n int64) []byte {
		return appendNumber(appendTexts(to, r.Provider, r.Model.Model, r.Kind, r.Gate, r.Code, r.Reason), n)
	})
	return appendEach(to, t.Errors, ProviderError.compare, func(to []byte, e ProviderError, n int64) []byte {
		return appendNumber(appendTexts(to, e.Provider, e.Code), n)
	})
}

func appendNumber(to []byte, n int64) []byte { return binary.AppendUvarint(to, uint64(max(n, 0))) }

func appendTexts(to []byte, texts ...string) []byte {
	for _, s := range texts {
		to = append(appendNumber(to, int64(len(s))), s...)
	}
	return to
}

func appendHistogram(to []byte, h Histogram) []byte {
	to = appendNumber(to, int64(len(h)))
	last := 0
	for _, b := range h {
		to = appendNumber(appendNumber(to, int64(b.At-last)), b.Count)
		last = b.At
	}
	return to
}

func appendEach[K comparable, V any](to []byte, in map[K]V, compare func(a, b K) int, one func([]byte, K, V) []byte) []byte {
	to = appendNumber(to, int64(len(in)))
	for _, k := range slices.SortedFunc(maps.Keys(in), compare) {
		to = one(to, k, in[k])
	}
	return to
}

// ParseStored reads the stored form, and that of older versions, which is JSON.
func ParseStored(b []byte) (t Tally, err error) {
	if len(b) > 0 && b[0] == '{' {
		return t, json.Unmarshal(b, &t)
	}
	if len(b) == 0 || b[0] != storedVersion {
		return t, errStored
	}
	r := reader{rest: b[1:]}
	t.Created, t.Completed, t.Failed, t.Cancelled = r.number(), r.number(), r.number(), r.number()
	t.Took = r.histogram()
	readEach(&r, &t.Codes, r.text, r.number)
	readEach(&r, &t.Models, r.model, r.calls)
	readEach(&r, &t.Refusals, func() Refusal {
		return Refusal{Model: r.model(), Kind: r.text(), Gate: r.text(), Code: r.text(), Reason: r.text()}
	}, r.number)
	readEach(&r, &t.Errors, func() ProviderError { return ProviderError{Provider: r.text(), Code: r.text()} }, r.number)
	if r.bad || len(r.rest) > 0 {
		return Tally{}, errStored
	}
	return t, nil
}

// reader reads the stored form. After an error it returns zeros.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) fail() {
	r.rest, r.bad = nil, true
}

func (r *reader) number() int64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > math.MaxInt64 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n) //nolint:gosec // G115: checked above
}

// length reads the number of things that follow, each of a byte or more.
func (r *reader) length() int {
	n := r.number()
	if n > int64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.length()
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func (r *reader) histogram() Histogram {
	n := r.length()
	if n == 0 {
		return nil
	}
	h, last := make(Histogram, n), int64(0)
	for i := range h {
		last += r.number()
		h[i] = Bin{int(last), r.number()}
		if last > maxBin || i > 0 && h[i-1].At >= h[i].At {
			r.fail()
			return nil
		}
	}
	return h
}

func (r *reader) model() Model { return Model{Provider: r.text(), Model: r.text()} }

func (r *reader) calls() *Calls {
	c := &Calls{}
	for _, n := range c.counters() {
		*n = r.number()
	}
	c.Took = r.histogram()
	return c
}

func readEach[K comparable, V any](r *reader, into *map[K]V, key func() K, value func() V) {
	n := r.length()
	if n == 0 {
		return
	}
	*into = make(map[K]V, n)
	for range n {
		k := key()
		(*into)[k] = value()
	}
}
