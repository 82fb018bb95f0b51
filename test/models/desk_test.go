package models

import (
	"net/http"
	"regexp"
	"strings"
	"sync"

	double "waybill.dev/waybill/test/double/vendor"
)

// stop is why a model stopped.
type stop int

const (
	clean stop = iota
	refused
	sequence
	unknown
)

// The ends of a stream that cases have.
const (
	whole   = double.EndWhole
	broken  = double.EndCut
	failing = double.EndError
	stalled = double.EndStall
)

// answer is a scripted model answer, independent of the vendor.
type answer struct {
	text    string
	stop    stop
	end     double.End
	in, out int
	// thoughts is the part of out that the model used to think.
	thoughts int
	// status other than 0 is an error instead.
	status     int
	retryAfter string
	// step releases one piece for each value received.
	step chan struct{}
	// raw is sent unchanged as the body if rawType is set.
	raw, rawType string
}

// pieces cuts the text into pieces of three of the doubles' tokens.
func (a answer) pieces() []string {
	var out []string
	text := a.text
	for len(text) > 12 {
		out, text = append(out, text[:12]), text[12:]
	}
	return append(out, text)
}

// call is a request that was answered.
type call struct {
	header http.Header
	body   []byte
}

// desk holds the answers of many runs: each run's prompts name its case.
type desk struct {
	mu      sync.Mutex // guards the fields below
	answers map[string][]answer
	calls   map[string][]call
}

func newDesk() *desk {
	return &desk{answers: map[string][]answer{}, calls: map[string][]call{}}
}

// put queues the answers of a case.
func (d *desk) put(name string, list ...answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[name] = append(d.answers[name], list...)
}

var caseName = regexp.MustCompile(`\[case:([A-Za-z0-9-]+)\]`)

// unforeseen is the status of a call that no test expects. It fails the run.
const unforeseen = http.StatusTeapot

// answer returns the next answer of the request's case.
func (d *desk) answer(h http.Header, body []byte) answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := ""
	if m := caseName.FindSubmatch(body); m != nil {
		name = string(m[1])
	}
	d.calls[name] = append(d.calls[name], call{h, body})
	if list := d.answers[name]; len(list) > 0 {
		d.answers[name] = list[1:]
		return list[0]
	}
	return answer{status: unforeseen}
}

// of returns the calls of a case.
func (d *desk) of(name string) []call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]call(nil), d.calls[name]...)
}

// count returns the number of calls of a case.
func (d *desk) count(name string) int { return len(d.of(name)) }

func trimBearer(s string) string { return strings.TrimPrefix(s, "Bearer ") }
