// Package limit holds the operator's settings per provider: the time limits of calls and limits of
// calls and tokens. Calls beyond a limit wait in a queue.
//
// The settings are one JSON file:
//
//	{"providers": {
//	  "openai": {"maxConcurrent": 32, "requestsPerMinute": 500, "tokensPerMinute": 200000},
//	  "house": {"timeouts": {"connectMs": 5000, "callMs": 3600000}, "maxTimeoutMs": 7200000},
//	  "*": {"maxConcurrent": 64}}}
//
// A provider uses its own entry, else that of "*". Entries are not merged.
package limit

import (
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// anyProvider is every provider without its own settings.
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

// member is a named value of the operator's file.
type member struct {
	name  string
	value int64
}

func (m Millis) members() []member {
	return []member{{"connectMs", m.Connect}, {"firstByteMs", m.FirstByte}, {"silenceMs", m.Silence}, {"callMs", m.Call}}
}

// Check returns a limit that is negative or above most; name is empty if there is none.
func (m Millis) Check(most time.Duration) (name string, value int64) {
	for _, l := range m.members() {
		if l.value < 0 || l.value > most.Milliseconds() {
			return l.name, l.value
		}
	}
	return "", 0
}

// Settings are the settings of one provider.
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

// check reports values out of range to f.
func (s Settings) check(f *settings.File, at string) {
	for _, l := range []member{
		{"maxConcurrent", int64(s.MaxConcurrent)},
		{"requestsPerMinute", int64(s.RequestsPerMinute)},
		{"tokensPerMinute", int64(s.TokensPerMinute)},
	} {
		if l.value < 0 {
			f.Wrong(at+"/"+l.name, "%d: want 0 (no limit) or more", l.value)
		}
	}
	most := longest.Milliseconds()
	for _, l := range s.Millis.members() {
		if l.value < 0 || l.value > most {
			f.Wrong(at+"/timeouts/"+l.name, "%d: want milliseconds from 1 to %d, or 0 for the default", l.value, most)
		}
	}
	if s.MaxTimeoutMs < 0 || s.MaxTimeoutMs > most {
		f.Wrong(at+"/maxTimeoutMs", "%d: want milliseconds from 1 to %d, or 0 for %d", s.MaxTimeoutMs, most, DefaultMaxTimeout.Milliseconds())
	}
}

// All are the settings of all providers. The nil All has defaults only. It never changes and
// is safe for concurrent use.
type All struct{ byID map[string]Settings }

// Parse reads the operator's document. known are the ids of the configured providers. The error has
// a line for each invalid value, with its path.
func Parse(doc []byte, known []string) (*All, error) {
	var file struct {
		Providers map[string]Settings `json:"providers"`
	}
	f := settings.Read(doc, &file)
	for _, id := range slices.Sorted(maps.Keys(file.Providers)) {
		at := settings.Path("/providers", id)
		if id != anyProvider && !slices.Contains(known, id) {
			f.Wrong(at, "no such provider; there are %v, and * for all others", known)
		}
		file.Providers[id].check(f, at)
	}
	if len(file.Providers) == 0 {
		f.Wrong("/providers", "want at least one provider")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &All{file.Providers}, nil
}

// For returns the settings of a provider.
func (a *All) For(id string) Settings {
	if a == nil {
		return Settings{}
	}
	if s, ok := a.byID[id]; ok {
		return s
	}
	return a.byID[anyProvider]
}
