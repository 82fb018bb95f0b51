package settingsfile

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/suggest"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// providerEntry are the members of an entry that are doubted.
type providerEntry struct {
	BaseURL *string                    `json:"baseUrl"`
	API     string                     `json:"api"`
	Key     *limit.Reference           `json:"key"`
	Headers map[string]string          `json:"headers"`
	Query   map[string]string          `json:"query"`
	Body    map[string]json.RawMessage `json:"body"`
	Times   map[string]int64           `json:"timeouts"`
	MaxMs   int64                      `json:"maxTimeoutMs"`
	OnError *limit.OnError             `json:"onError"`
}

// The shortest time limits that can be meant in milliseconds: an answer of a model takes longer.
const (
	shortCallMs = 1000
	shortMaxMs  = 10000
)

// providerSettings doubts addresses, times and secrets in the file.
func (d *doubts) providerSettings(doc []byte) {
	var raw struct {
		Providers map[string]json.RawMessage `json:"providers"`
	}
	_ = json.Unmarshal(doc, &raw) // Check reports it
	for _, id := range sortedKeys(raw.Providers) {
		var (
			e       providerEntry
			members map[string]json.RawMessage
			at      = settings.Path("/providers", id)
		)
		if json.Unmarshal(raw.Providers[id], &members) != nil || json.Unmarshal(raw.Providers[id], &e) != nil {
			continue
		}
		if len(members) == 0 {
			d.add(at, "is empty and sets nothing")
		}
		d.baseURL(at+"/baseUrl", e)
		d.times(at, e)
		d.secretsIn(at, e)
		d.body(at+"/body", e.Body)
		if e.OnError != nil {
			if len(e.OnError.Models) == 0 {
				d.add(at+"/onError", "names no models, so it has no effect")
			}
			if m := e.OnError.Models; len(m) == 1 && strings.HasPrefix(m[0], id+"/") {
				d.add(at+"/onError/models/0", "is a model of the same provider, which fails as well if its server does")
			}
		}
	}
}

// versionTwice matches addresses with their version twice.
var versionTwice = regexp.MustCompile(`/v1/v1/?$`)

// baseURL doubts addresses that lack a part, or have it twice.
func (d *doubts) baseURL(at string, e providerEntry) {
	if e.BaseURL == nil {
		return
	}
	u, err := url.Parse(*e.BaseURL)
	switch {
	case *e.BaseURL == "":
		d.add(at, "is empty, which is the vendor's address; want the address of the server, or remove the member")
	case err != nil || u.Host == "":
	case versionTwice.MatchString(u.Path):
		d.add(at, "ends in /v1 twice")
	case strings.Contains(u.Host, "YOUR") || strings.Contains(u.Host, "<"):
		d.add(at, "has a placeholder; want the name of your server")
	case (e.API == "" || e.API == string(limit.OpenAIChat)) && strings.Trim(u.Path, "/") == "" && isLocal(u.Hostname()):
		d.add(at, "has no path; most servers of this interface want /v1 at the end")
	}
}

func isLocal(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// times doubts time limits that were probably meant in seconds, and those that others make void.
func (d *doubts) times(at string, e providerEntry) {
	for _, name := range sortedKeys(e.Times) {
		if ms := e.Times[name]; ms > 0 && ms < shortCallMs && name != "connectMs" {
			d.add(at+"/timeouts/"+name, "is %d milliseconds, less than a model needs to answer; if you mean seconds, write %d", ms, ms*1000)
		}
	}
	call, first := e.Times["callMs"], e.Times["firstByteMs"]
	if call > 0 && first > call {
		d.add(at+"/timeouts/firstByteMs", "is longer than callMs, %d, which ends the call first", call)
	}
	switch {
	case e.MaxMs > 0 && e.MaxMs < shortMaxMs:
		d.add(at+"/maxTimeoutMs", "is %d milliseconds; if you mean seconds, write %d", e.MaxMs, e.MaxMs*1000)
	case e.MaxMs > 0 && call > e.MaxMs:
		d.add(at+"/maxTimeoutMs", "is below callMs, %d, which nodes can set as well", call)
	}
}

// secretValue matches keys of well-known vendors, and secretName the names of members that hold one.
var (
	secretValue = regexp.MustCompile(`^(sk-|gsk_|AIza|xai-|hf_|pk-live|sk_live|ghp_|glpat-|Bearer |eyJ)[A-Za-z0-9_.\-]{8,}`)
	secretName  = regexp.MustCompile(`(?i)(api[-_]?key|token|secret|password|^key$|^code$)`)
)

// secretsIn doubts secrets in the file. Its messages do not repeat them.
func (d *doubts) secretsIn(at string, e providerEntry) {
	if e.Key != nil {
		if secretValue.MatchString(e.Key.Env) {
			d.add(at+"/key/env", "looks like the secret itself; want the name of an environment variable that has it")
		}
		if secretValue.MatchString(e.Key.File) {
			d.add(at+"/key/file", "looks like the secret itself; want the path of a file that has it")
		}
	}
	for _, name := range sortedKeys(e.Headers) {
		path := settings.Path(at+"/headers", name)
		switch value := e.Headers[name]; {
		case value == "":
			d.add(path, "is empty")
		case secretValue.MatchString(value) || secretName.MatchString(name):
			d.add(path, "is probably a secret; use secretHeaders, which names a variable or a file")
		}
	}
	for _, name := range sortedKeys(e.Query) {
		if secretValue.MatchString(e.Query[name]) || secretName.MatchString(name) && name != "api-version" {
			d.add(settings.Path(at+"/query", name), "is probably a secret, and addresses reach logs of servers; use key or secretHeaders")
		}
	}
}

// bodyMembers are common members of requests, and nodeMembers those that a node's config sets for each call.
var (
	bodyMembers = []string{"temperature", "top_p", "top_k", "min_p", "max_tokens", "max_completion_tokens", "stop", "seed", "frequency_penalty", "presence_penalty", "repetition_penalty", "reasoning", "reasoning_effort", "logprobs", "logit_bias", "service_tier", "user", "metadata", "thinking"}
	nodeMembers = []string{"max_tokens", "max_completion_tokens"}
)

// body doubts members that are misspelled, or that cut the answers of all nodes.
func (d *doubts) body(at string, body map[string]json.RawMessage) {
	for _, name := range sortedKeys(body) {
		switch {
		case slices.Contains(nodeMembers, name):
			d.add(settings.Path(at, name), "limits the answers of all nodes, instead of maxTokens of each; remove it if that is not meant")
		case !slices.Contains(bodyMembers, name):
			if near := suggest.Names(name, bodyMembers, 1); len(near) > 0 {
				d.add(settings.Path(at, name), "is no common member of requests; did you mean %s?", near[0])
			}
		}
	}
}
