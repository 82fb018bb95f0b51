package compat

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// DefaultTimeout is long enough for a model that has to be loaded first.
const DefaultTimeout = 2 * time.Minute

// Config names a server.
type Config struct {
	// Dialect says whose rules the server has; empty means DialectCompatible.
	Dialect Dialect
	// ID is what workflows call the provider; empty means the dialect's default.
	ID string
	// BaseURL is the server's address up to and including the version, such as
	// http://127.0.0.1:11434/v1. Empty means OpenAI's own, in its dialect.
	BaseURL string
	// APIKey may be empty: many self-hosted servers want none, and OpenAI may be
	// asked with tenants' keys alone.
	APIKey provider.Secret
	// KeyName says where the key is set, such as an environment variable; errors
	// about the key name it.
	KeyName string
	// Models are the models that may be asked; none allows any.
	Models []string
	// ReasoningEffort is how much models think that do: none, minimal, low, medium,
	// high, xhigh or max, not all known to all models. Empty leaves it to the model.
	ReasoningEffort string
	// Voice is that of OpenAI's models that speak; empty means DefaultVoice.
	Voice string
	// Timeout is how long the server may keep silent: until it answers, and
	// between two pieces of the answer. It does not bound the whole call, which is
	// the caller's context's to do. 0 means DefaultTimeout.
	Timeout time.Duration
}

// validID is the protocol's pattern of provider ids (OpenWOP envelope contract §16.1).
var validID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// Validate returns all that is wrong, joined, each with the field, its value and
// the remedy.
func (c Config) Validate() error {
	var errs []error
	add := func(field, value, remedy string) {
		errs = append(errs, fmt.Errorf("provider %s: %s: %q: %s", c.id(), field, value, remedy))
	}
	if !validID.MatchString(c.id()) {
		add("id", c.ID, "want lower-case letters, digits and dashes, beginning with a letter, 64 at most")
	}
	if c.Dialect != DialectCompatible && c.Dialect != DialectOpenAI {
		add("dialect", string(c.Dialect), "want openai, or nothing for a compatible server")
	}
	if remedy := checkURL(c.baseURL()); remedy != "" {
		add("base_url", shown(c.BaseURL), remedy)
	}
	if malformed(c.APIKey) {
		add("api_key", provider.Redacted, "has a space, a line end or a sign that no key has; set it again")
	}
	if slices.Contains(c.Models, "") {
		add("models", strings.Join(c.Models, ","), "has an empty name; remove it")
	}
	if c.ReasoningEffort != "" && !slices.Contains(efforts, c.ReasoningEffort) {
		add("reasoning_effort", c.ReasoningEffort, "want one of "+strings.Join(efforts, ", ")+", or nothing for the model's own")
	}
	if c.Timeout < 0 {
		add("timeout", c.Timeout.String(), "must not be negative; 0 means "+DefaultTimeout.String())
	}
	return errors.Join(errs...)
}

// malformed reports whether a key has a sign that no header carries.
func malformed(key provider.Secret) bool {
	return strings.ContainsFunc(string(key), func(r rune) bool { return r <= ' ' || r > '~' })
}

func (c Config) id() string {
	if c.ID != "" {
		return c.ID
	}
	if c.Dialect == DialectOpenAI {
		return OpenAIID
	}
	return DefaultID
}

func (c Config) baseURL() string {
	if c.BaseURL == "" && c.Dialect == DialectOpenAI {
		return OpenAIBaseURL
	}
	return c.BaseURL
}

func (c Config) timeout() time.Duration {
	if c.Timeout == 0 {
		return DefaultTimeout
	}
	return c.Timeout
}

// checkURL is the remedy for a wrong address.
func checkURL(base string) string {
	const example = "such as http://127.0.0.1:11434/v1"
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return "want http(s)://host[:port]/path, " + example
	case u.User != nil:
		return "must not hold a user or a password; give the key apart"
	case u.RawQuery != "" || u.Fragment != "":
		return "must not have a query or a fragment; want " + example
	default:
		return ""
	}
}

// shown is an address without what may be a secret in it.
func shown(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return provider.Redacted
	}
	if u.User != nil {
		u.User = url.User(provider.Redacted)
	}
	u.RawQuery, u.Fragment = "", ""
	if s, err := url.PathUnescape(u.String()); err == nil {
		return s
	}
	return provider.Redacted
}
