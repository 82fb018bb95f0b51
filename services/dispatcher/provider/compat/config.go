package compat

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"time"
)

// Secret is a key that prints, logs and marshals as a marker.
type Secret string

const redacted = "[REDACTED]"

// String hides the value.
func (Secret) String() string { return redacted }

// GoString hides the value.
func (Secret) GoString() string { return redacted }

// LogValue hides the value.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the value.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Config names a server.
type Config struct {
	// ID is what workflows call the provider.
	ID string
	// BaseURL is the server's address up to and including the version, such as
	// http://127.0.0.1:11434/v1.
	BaseURL string
	// APIKey may be empty: many self-hosted servers want none.
	APIKey Secret
	// Timeout bounds the wait for the first byte of an answer.
	Timeout time.Duration
}

// DefaultTimeout is long enough for a model that has to be loaded first.
const DefaultTimeout = 60 * time.Second

var validID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// Validate returns all that is wrong, joined.
func (c Config) Validate() error {
	var errs []error
	if !validID.MatchString(c.ID) {
		errs = append(errs, fmt.Errorf("provider id %q: want lower-case letters, digits and dashes, beginning with a letter", c.ID))
	}
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		errs = append(errs, fmt.Errorf("provider %s: the URL must be http(s)://host[:port]/path, such as http://127.0.0.1:11434/v1", c.ID))
	case u.User != nil:
		errs = append(errs, fmt.Errorf("provider %s: the URL must not hold a user or password; give the key in the environment", c.ID))
	case u.RawQuery != "" || u.Fragment != "":
		errs = append(errs, fmt.Errorf("provider %s: the URL must not have a query or fragment", c.ID))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("provider %s: timeout %s: must not be negative", c.ID, c.Timeout))
	}
	return errors.Join(errs...)
}
