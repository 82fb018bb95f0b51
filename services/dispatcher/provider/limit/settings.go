// Package limit holds what an operator sets per provider: the time limits of calls, and how
// many calls and tokens a provider takes. Calls beyond that wait in a queue.
//
// The settings are one JSON file:
//
//	{"providers": {
//	  "openai": {"maxConcurrent": 32, "requestsPerMinute": 500, "tokensPerMinute": 200000},
//	  "house": {"timeouts": {"connectMs": 5000, "callMs": 3600000}, "maxTimeoutMs": 7200000},
//	  "*": {"maxConcurrent": 64}}}
//
// A provider uses its own entry, else that of "*", each as a whole.
package limit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// anyProvider stands for every provider without settings of its own.
const anyProvider = "*"

// DefaultMaxTimeout is the longest time limit that a node can set, unless the operator sets
// another.
const DefaultMaxTimeout = time.Hour

// longest is the largest time limit that an operator can set.
const longest = 7 * 24 * time.Hour

// Millis are the time limits of a call in milliseconds, as operators and workflows write
// them; 0 is unset.
type Millis struct {
	Connect   int64 `json:"connectMs"`
	FirstByte int64 `json:"firstByteMs"`
	Silence   int64 `json:"silenceMs"`
	Call      int64 `json:"callMs"`
}

// Timeouts are the time limits as durations.
func (m Millis) Timeouts() provider.Timeouts {
	ms := func(n int64) time.Duration {
		return time.Duration(min(max(n, 0), longest.Milliseconds())) * time.Millisecond
	}
	return provider.Timeouts{Connect: ms(m.Connect), FirstByte: ms(m.FirstByte), Silence: ms(m.Silence), Call: ms(m.Call)}
}

// Check finds a limit that is negative or above most; name is empty if there is none.
func (m Millis) Check(most time.Duration) (name string, value int64) {
	for _, l := range []struct {
		name  string
		value int64
	}{{"connectMs", m.Connect}, {"firstByteMs", m.FirstByte}, {"silenceMs", m.Silence}, {"callMs", m.Call}} {
		if l.value < 0 || l.value > most.Milliseconds() {
			return l.name, l.value
		}
	}
	return "", 0
}

// Settings are those of one provider.
type Settings struct {
	// MaxConcurrent limits the calls in flight; 0 means no limit.
	MaxConcurrent int `json:"maxConcurrent"`
	// RequestsPerMinute and TokensPerMinute limit the rate of calls and of their tokens,
	// prompt and answer together; 0 means no limit.
	RequestsPerMinute int `json:"requestsPerMinute"`
	TokensPerMinute   int `json:"tokensPerMinute"`
	// Millis are the time limits of calls whose node sets none.
	Millis Millis `json:"timeouts"`
	// MaxTimeoutMs limits what a node can set; 0 means DefaultMaxTimeout.
	MaxTimeoutMs int64 `json:"maxTimeoutMs"`
}

// MaxTimeout is the longest time limit that a node can set. It is never below the
// provider's own.
func (s Settings) MaxTimeout() time.Duration {
	most := DefaultMaxTimeout
	if s.MaxTimeoutMs > 0 {
		most = time.Duration(s.MaxTimeoutMs) * time.Millisecond
	}
	t := s.Millis.Timeouts()
	return max(most, t.Connect, t.FirstByte, t.Silence, t.Call)
}

func (s Settings) check(at string) (errs []error) {
	for _, l := range []struct {
		name  string
		value int
	}{{"maxConcurrent", s.MaxConcurrent}, {"requestsPerMinute", s.RequestsPerMinute}, {"tokensPerMinute", s.TokensPerMinute}} {
		if l.value < 0 {
			errs = append(errs, fmt.Errorf("at %q: %d: want 0 (no limit) or more", at+"/"+l.name, l.value))
		}
	}
	if name, value := s.Millis.Check(longest); name != "" {
		errs = append(errs, fmt.Errorf("at %q: %d: want milliseconds from 1 to %d, or 0 for the default", at+"/timeouts/"+name, value, longest.Milliseconds()))
	}
	if s.MaxTimeoutMs < 0 || s.MaxTimeoutMs > longest.Milliseconds() {
		errs = append(errs, fmt.Errorf("at %q: %d: want milliseconds from 1 to %d, or 0 for %d", at+"/maxTimeoutMs", s.MaxTimeoutMs, longest.Milliseconds(), DefaultMaxTimeout.Milliseconds()))
	}
	return errs
}

// All are the settings of all providers. The nil All has defaults only. It never changes and
// is safe for concurrent use.
type All struct{ byID map[string]Settings }

// Parse reads the operator's document. known are the ids of the configured providers.
func Parse(doc []byte, known []string) (*All, error) {
	if err := strictjson.Check(doc, strictjson.Limits{}); err != nil {
		return nil, err
	}
	var file struct {
		Providers map[string]Settings `json:"providers"`
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf(`want {"providers": {ID: {maxConcurrent?, requestsPerMinute?, tokensPerMinute?, timeouts?, maxTimeoutMs?}}}: %w`, err)
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(file.Providers)) {
		if id != anyProvider && !slices.Contains(known, id) {
			errs = append(errs, fmt.Errorf("at %q: no such provider; there are %v, and * for all others", "/providers/"+id, known))
		}
		errs = append(errs, file.Providers[id].check("/providers/"+id)...)
	}
	if len(file.Providers) == 0 {
		errs = append(errs, errors.New(`at "/providers": want at least one provider`))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &All{file.Providers}, nil
}

// Of are the settings of a provider.
func (a *All) Of(id string) Settings {
	if a == nil {
		return Settings{}
	}
	if s, ok := a.byID[id]; ok {
		return s
	}
	return a.byID[anyProvider]
}
