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
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/services/dispatcher/provider"
)

//go:embed settings.schema.json
var schemaJSON []byte

// Schema is the JSON Schema of the operator's document, for editors. A test compares it with the types.
func Schema() []byte { return schemaJSON }

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
	Server

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
	// OnError names the models to call if one of this provider fails, for nodes that name none.
	OnError OnError `json:"onError"`
	// Retries are the retries of a node whose workflow sets none.
	Retries int64 `json:"retries"`
}

// maxRetries is the largest value of Retries.
const maxRetries = 100

// OnError is what follows a failed call.
type OnError struct {
	// Models are other models, as PROVIDER/MODEL, in the order in which they are called.
	Models []string `json:"models"`
}

// MaxOthers limits the models of an OnError.
const MaxOthers = 8

// modelName is the form of a model in an OnError.
var modelName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}/.+$`)

// Check returns what is wrong with the models, by index; -1 is the list.
func (o OnError) Check() (index int, problem string) {
	if len(o.Models) > MaxOthers {
		return -1, fmt.Sprintf("%d models: want %d at most", len(o.Models), MaxOthers)
	}
	for i, m := range o.Models {
		if !modelName.MatchString(m) {
			return i, fmt.Sprintf("%q: want PROVIDER/MODEL, such as anthropic/claude-sonnet-5-5", m)
		}
		if slices.Index(o.Models, m) < i {
			return i, fmt.Sprintf("%q is listed twice", m)
		}
	}
	return 0, ""
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
func (s Settings) check(f *settings.File, at, id string, on Host) {
	s.Server.check(f, at, id)
	if on.Server != nil && id != anyProvider && s.Describes() {
		for _, p := range on.Server(id, s.Server) {
			f.Wrong(at+p.Path, "%s", p.Message)
		}
	}
	f.Range(at+"/retries", s.Retries, 0, maxRetries)
	for _, l := range []member{
		{"maxConcurrent", int64(s.MaxConcurrent)},
		{"requestsPerMinute", int64(s.RequestsPerMinute)},
		{"tokensPerMinute", int64(s.TokensPerMinute)},
	} {
		if l.value < 0 {
			f.Wrong(at+"/"+l.name, "%d: want 0 (no limit) or more", l.value)
		}
	}
	if i, problem := s.OnError.Check(); problem != "" && i < 0 {
		f.Wrong(at+"/onError/models", "%s", problem)
	} else if problem != "" {
		f.Wrong(fmt.Sprintf("%s/onError/models/%d", at, i), "%s", problem)
	}
	for i, m := range s.OnError.Models {
		other, name, _ := strings.Cut(m, "/")
		path := fmt.Sprintf("%s/onError/models/%d", at, i)
		f.Named(path, other, on.Providers, "provider", "want PROVIDER/MODEL")
		if on.Model == nil || name == "" {
			continue
		}
		if problem := on.Model(path, other, name); problem != "" {
			f.Wrong(path, "%s", problem)
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

// Host is what the reader of a document knows of the host.
type Host struct {
	// Providers are the ids of the configured providers; nil knows all.
	Providers *settings.Names
	// Server returns what the adapter of a server finds wrong with it; nil asks none.
	Server func(id string, s Server) []Finding
	// Model returns why the model at a path cannot be called; nil accepts all.
	Model func(path, provider, model string) string
}

// Finding is a problem of the member of an entry.
type Finding struct {
	// Path is a JSON pointer within the entry.
	Path, Message string
}

// validID is the protocol's pattern of provider ids (OpenWOP envelope contract §16.1).
var validID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// Parse reads the operator's document. The error has a line for each invalid value, with its path.
func Parse(doc []byte, on Host) (*All, error) {
	var file struct {
		Schema    string              `json:"$schema"` // for editors
		Providers map[string]Settings `json:"providers"`
	}
	f := settings.Read(doc, &file)
	if on.Providers != nil {
		all := *on.Providers
		all.Known = slices.Clone(all.Known)
		for _, id := range slices.Sorted(maps.Keys(file.Providers)) {
			if file.Providers[id].Describes() && !slices.Contains(all.Known, id) { // one with a mistake, too
				all.Known = append(all.Known, id)
			}
		}
		on.Providers = &all
	}
	for _, id := range slices.Sorted(maps.Keys(file.Providers)) {
		at := settings.Path("/providers", id)
		if id != anyProvider && !validID.MatchString(id) {
			f.Wrong(at, "%swant lower-case letters, digits and dashes, beginning with a letter, 64 at most, or * for all others", lowered(id))
		} else if id != anyProvider {
			f.Named(at, id, on.Providers, "provider", "* is all others; an entry with baseUrl is a provider of its own")
		}
		file.Providers[id].check(f, at, id, on)
	}
	if len(file.Providers) == 0 {
		f.Wrong("/providers", "want at least one provider")
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return &All{file.Providers}, nil
}

// Described returns the ids of the entries of a document that describe a server, also if the document has
// mistakes.
func Described(doc []byte) (ids []string) {
	var file struct {
		Providers map[string]struct {
			API     json.RawMessage `json:"api"`
			BaseURL json.RawMessage `json:"baseUrl"`
			Key     json.RawMessage `json:"key"`
		} `json:"providers"`
	}
	_ = json.Unmarshal(doc, &file) // Parse reports the mistakes
	for _, id := range slices.Sorted(maps.Keys(file.Providers)) {
		if e := file.Providers[id]; len(e.API)+len(e.BaseURL)+len(e.Key) > 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// Servers are the ids of the providers whose entries describe a server, sorted.
func (a *All) Servers() (ids []string) {
	if a == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		if a.byID[id].Describes() {
			ids = append(ids, id)
		}
	}
	return ids
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

// APIName returns the name of the interface of a provider's server.
func (a *All) APIName(id string) string { return string(a.For(id).APIOf(id)) }

// lowered is the beginning of a message about an id with capitals; empty if more is wrong with it.
func lowered(id string) string {
	if lower := strings.ToLower(id); lower != id && validID.MatchString(lower) {
		return "did you mean " + lower + "? "
	}
	return ""
}
