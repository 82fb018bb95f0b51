package outbound

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Server is the operator's configuration of an adapter's server.
type Server struct {
	// ID is the provider's id in workflows.
	ID string
	// BaseURL is the server's address.
	BaseURL string
	// APIKey is the host's key. It may be empty if the server needs none, a gateway adds it, or
	// every tenant has its own.
	APIKey provider.Secret
	// KeyName says where the key is set, such as an environment variable, for error messages.
	KeyName string
	// Models are the allowed models; empty allows any.
	Models []string
	// Timeout limits the first byte of the answer and each silence if the request sets no limits; 0
	// uses the defaults. The caller's context limits the whole call.
	Timeout time.Duration
	// Extras are added to every request.
	Extras Extras
}

// Rules are an adapter's defaults and rules for its server.
type Rules struct {
	// ID and BaseURL are the defaults; BaseURL may be empty.
	ID, BaseURL string
	// Form and Example describe an address.
	Form, Example string
	// Adds is the path appended by the adapter, such as /v1; empty for none.
	Adds string
	// NoPath means that the address has no path: the adapter sets all of it.
	NoPath bool
}

// validID is the protocol's pattern of provider ids (OpenWOP envelope contract §16.1).
var validID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// WithDefaults returns the server with defaults for empty fields.
func (s Server) WithDefaults(r Rules) Server {
	if s.ID == "" {
		s.ID = r.ID
	}
	if s.BaseURL == "" {
		s.BaseURL = r.BaseURL
	}
	return s
}

// Timeouts returns the limits of calls whose request sets none.
func (s Server) Timeouts() provider.Timeouts {
	return provider.Timeouts{FirstByte: s.Timeout, Silence: s.Timeout}.Or(provider.DefaultTimeouts())
}

// Validate returns all problems of a server with defaults, as *InvalidError. more are findings of the
// adapter.
func (s Server) Validate(r Rules, more ...Finding) error {
	findings := more
	if !validID.MatchString(s.ID) {
		findings = append(findings, Finding{
			"id", s.ID, "want lower-case letters, digits and dashes, beginning with a letter, 64 at most",
		})
	}
	if remedy := r.checkURL(s.BaseURL); remedy != "" {
		findings = append(findings, Finding{"baseUrl", redactURL(s.BaseURL), remedy})
	}
	if !ValidKey(s.APIKey) {
		findings = append(findings, Finding{"key", provider.Redacted, malformed})
	}
	if slices.Contains(s.Models, "") {
		findings = append(findings, Finding{"models", strings.Join(s.Models, ","), "has an empty name; remove it"})
	}
	if s.Timeout < 0 {
		findings = append(findings, Finding{"timeout", s.Timeout.String(), "must not be negative; 0 uses the defaults"})
	}
	if len(findings) > 0 {
		return &InvalidError{s.ID, findings}
	}
	return nil
}

// Finding is a problem of a server's configuration. Field is the member of the operator's settings, with
// dots between nested ones; id is the name of the entry. Value is empty if there is none to show.
type Finding struct{ Field, Value, Remedy string }

// Problem is the value and the remedy.
func (f Finding) Problem() string {
	if f.Value == "" {
		return f.Remedy
	}
	return fmt.Sprintf("%q: %s", f.Value, f.Remedy)
}

// InvalidError has all problems of a server's configuration.
type InvalidError struct {
	ID       string
	Findings []Finding
}

// Error has a line for each problem.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = fmt.Sprintf("provider %s: %s: %s", e.ID, f.Field, f.Problem())
	}
	return strings.Join(lines, "\n")
}

const malformed = "has a space, a line end or a sign that no key has; set it again"

// ValidKey reports whether a key is a valid header value.
func ValidKey(key provider.Secret) bool {
	return !strings.ContainsFunc(string(key), func(r rune) bool { return r <= ' ' || r > '~' })
}

// Check rejects requests that the server need not see.
func (s Server) Check(req provider.Request) error {
	if err := req.Validate(); err != nil {
		return err
	}
	if len(s.Models) > 0 && !slices.Contains(s.Models, req.Model) {
		return &provider.Error{
			Code:    provider.CodeModelNotSupported,
			Message: fmt.Sprintf("provider %s has no model %q; it has %s", s.ID, req.Model, strings.Join(s.Models, ", ")),
		}
	}
	if !ValidKey(req.Credential) {
		return &provider.Error{Code: provider.CodeCredentialRequired, Message: s.KeyOf(req) + " " + malformed}
	}
	return nil
}

// KeyOf describes where the key of a call is set.
func (s Server) KeyOf(req provider.Request) string {
	switch {
	case req.Credential != "":
		return "the tenant's key for provider " + s.ID
	case s.KeyName != "":
		return s.KeyName
	default:
		return "the API key of provider " + s.ID
	}
}

// checkURL returns the remedy for an invalid address.
func (r Rules) checkURL(base string) string {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return "want " + r.Form + ", such as " + r.Example
	case u.User != nil:
		return "must not hold a user or a password; give the key apart"
	case u.RawQuery != "" || u.Fragment != "":
		return "must not have a query or a fragment; want such as " + r.Example
	case r.Adds != "" && strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), r.Adds):
		return "must not end in " + r.Adds + ", which is added to it; want such as " + r.Example
	case endpointIn(u.Path) != "":
		return "must be the base of all calls, without " + endpointIn(u.Path) + "; want such as " + r.Example
	case r.NoPath && strings.Trim(u.Path, "/") != "":
		return "must not have a path, which is set for each model; want such as " + r.Example
	default:
		return ""
	}
}

// endpoints are paths of single calls, which authors of addresses copy from documentation.
var endpoints = []string{"/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/v1/embeddings", "/v1/models"}

// endpointIn returns the part of a path that names a single call; empty without one.
func endpointIn(path string) string {
	for _, e := range endpoints {
		if strings.HasSuffix(strings.TrimSuffix(path, "/"), e) {
			return strings.TrimPrefix(e, "/v1")
		}
	}
	return ""
}

// redactURL returns an address without parts that may be secret.
func redactURL(base string) string {
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
