package outbound

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

// Server is where an adapter asks, and with whose key, as the operator gives it.
type Server struct {
	// ID is what workflows call the provider.
	ID string
	// BaseURL is the server's address.
	BaseURL string
	// APIKey is the host's. It may be empty where the server wants none, a gateway adds
	// it, or every tenant brings its own.
	APIKey provider.Secret
	// KeyName says where the key is set, such as an environment variable; errors
	// about the key name it.
	KeyName string
	// Models are the models that may be asked; none allows any.
	Models []string
	// Timeout limits the first byte of the answer and each silence, where a request sets
	// no limits of its own. 0 uses the defaults. The caller's context limits the call.
	Timeout time.Duration
}

// Rules are an adapter's own about its server.
type Rules struct {
	// ID and BaseURL stand where the operator gives none; BaseURL may be empty.
	ID, BaseURL string
	// Form and Example say what an address looks like.
	Form, Example string
	// Adds is the path that the adapter adds itself, such as /v1; empty: none.
	Adds string
}

// validID is the protocol's pattern of provider ids (OpenWOP envelope contract §16.1).
var validID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// WithDefaults is the server with what stands where the operator gave nothing.
func (s Server) WithDefaults(r Rules) Server {
	if s.ID == "" {
		s.ID = r.ID
	}
	if s.BaseURL == "" {
		s.BaseURL = r.BaseURL
	}
	return s
}

// Timeouts are the limits of calls whose request sets none.
func (s Server) Timeouts() provider.Timeouts {
	return provider.Timeouts{FirstByte: s.Timeout, Silence: s.Timeout}.Or(provider.DefaultTimeouts())
}

// Validate returns all that is wrong with a filled server, joined, each with the
// field, its value and the remedy. More are an adapter's own findings.
func (s Server) Validate(r Rules, more ...Finding) error {
	findings := more
	if !validID.MatchString(s.ID) {
		findings = append(findings, Finding{"id", s.ID, "want lower-case letters, digits and dashes, beginning with a letter, 64 at most"})
	}
	if remedy := r.checkURL(s.BaseURL); remedy != "" {
		findings = append(findings, Finding{"base_url", redactURL(s.BaseURL), remedy})
	}
	if !ValidKey(s.APIKey) {
		findings = append(findings, Finding{"api_key", provider.Redacted, malformed})
	}
	if slices.Contains(s.Models, "") {
		findings = append(findings, Finding{"models", strings.Join(s.Models, ","), "has an empty name; remove it"})
	}
	if s.Timeout < 0 {
		findings = append(findings, Finding{"timeout", s.Timeout.String(), "must not be negative; 0 uses the defaults"})
	}
	var errs []error
	for _, f := range findings {
		errs = append(errs, fmt.Errorf("provider %s: %s: %q: %s", s.ID, f.Field, f.Value, f.Remedy))
	}
	return errors.Join(errs...)
}

// Finding is something wrong with a server's configuration.
type Finding struct{ Field, Value, Remedy string }

const malformed = "has a space, a line end or a sign that no key has; set it again"

// ValidKey reports whether a header can carry a key.
func ValidKey(key provider.Secret) bool {
	return !strings.ContainsFunc(string(key), func(r rune) bool { return r <= ' ' || r > '~' })
}

// Check refuses what need not be asked of the server.
func (s Server) Check(req provider.Request) error {
	if err := req.Validate(); err != nil {
		return err
	}
	if len(s.Models) > 0 && !slices.Contains(s.Models, req.Model) {
		return &provider.Error{
			Code: provider.CodeModelNotSupported, Message: fmt.Sprintf("provider %s has no model %q; it has %s", s.ID, req.Model, strings.Join(s.Models, ", ")),
		}
	}
	if !ValidKey(req.Credential) {
		return &provider.Error{Code: provider.CodeCredentialRequired, Message: s.KeyOf(req) + " " + malformed}
	}
	return nil
}

// KeyOf says where the key is to be found that a call is made with.
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

// checkURL is the remedy for a wrong address.
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
	default:
		return ""
	}
}

// redactURL is an address without what may be a secret in it.
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
