package gemini

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

// DefaultID is the provider's id when there is but one such account.
const DefaultID = "gemini"

// DefaultBaseURL is the vendor's address.
const DefaultBaseURL = "https://generativelanguage.googleapis.com"

// apiVersion is the one that has schemas in JSON Schema.
const apiVersion = "v1beta"

// DefaultTimeout is long enough for a model that thinks before it speaks.
const DefaultTimeout = 2 * time.Minute

// Config names an account with the vendor.
type Config struct {
	// ID is what workflows call the provider; empty means DefaultID.
	ID string
	// BaseURL is the vendor's address, or that of a gateway before it, without the
	// version; empty means DefaultBaseURL.
	BaseURL string
	// APIKey is the host's. It may be empty where every call brings its own, or a
	// gateway adds it.
	APIKey provider.Secret
	// KeyName says where the key is set, such as an environment variable; errors
	// about the key name it.
	KeyName string
	// Models are the models that may be asked; none allows any.
	Models []string
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
	if remedy := checkURL(c.baseURL()); remedy != "" {
		add("base_url", shown(c.BaseURL), remedy)
	}
	if !headerValue(string(c.APIKey)) {
		add("api_key", provider.Redacted, "has a space, a line end or a sign that no key has; set it again")
	}
	if slices.Contains(c.Models, "") {
		add("models", strings.Join(c.Models, ","), "has an empty name; remove it")
	}
	if c.Timeout < 0 {
		add("timeout", c.Timeout.String(), "must not be negative; 0 means "+DefaultTimeout.String())
	}
	return errors.Join(errs...)
}

func (c Config) id() string {
	if c.ID == "" {
		return DefaultID
	}
	return c.ID
}

func (c Config) baseURL() string {
	if c.BaseURL == "" {
		return DefaultBaseURL
	}
	return c.BaseURL
}

func (c Config) timeout() time.Duration {
	if c.Timeout == 0 {
		return DefaultTimeout
	}
	return c.Timeout
}

// headerValue says that a header can carry a key.
func headerValue(key string) bool {
	return !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}

// checkURL is the remedy for a wrong address.
func checkURL(base string) string {
	const example = "such as " + DefaultBaseURL
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return "want http(s)://host[:port][/path], " + example
	case u.User != nil:
		return "must not hold a user or a password; give the key apart"
	case u.RawQuery != "" || u.Fragment != "":
		return "must not have a query or a fragment; want " + example
	case strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/"+apiVersion):
		return "must not end with the version, which is added; want " + example
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
