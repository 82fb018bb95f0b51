package compat

import (
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

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
	// Timeout limits the first byte of the answer and each silence, where a request sets
	// no limits of its own. 0 uses the defaults. The caller's context limits the call.
	Timeout time.Duration
}

// Validate returns all that is wrong, joined, each with the field, its value and
// the remedy.
func (c Config) Validate() error {
	var more []outbound.Finding
	if c.Dialect != DialectCompatible && c.Dialect != DialectOpenAI {
		more = append(more, outbound.Finding{Field: "dialect", Value: string(c.Dialect), Remedy: "want openai, or nothing for a compatible server"})
	}
	if c.ReasoningEffort != "" && !slices.Contains(efforts, c.ReasoningEffort) {
		more = append(more, outbound.Finding{Field: "reasoning_effort", Value: c.ReasoningEffort, Remedy: "want one of " + strings.Join(efforts, ", ") + ", or nothing for the model's own"})
	}
	return c.server().Validate(c.Dialect.rules(), more...)
}

func (c Config) server() outbound.Server {
	return outbound.Server{ID: c.ID, BaseURL: c.BaseURL, APIKey: c.APIKey, KeyName: c.KeyName, Models: c.Models, Timeout: c.Timeout}.WithDefaults(c.Dialect.rules())
}

// rules are those of a dialect's servers.
func (d Dialect) rules() outbound.Rules {
	r := outbound.Rules{ID: DefaultID, Form: "http(s)://host[:port]/path", Example: "http://127.0.0.1:11434/v1"}
	if d == DialectOpenAI {
		r.ID, r.BaseURL = OpenAIID, OpenAIBaseURL
	}
	return r
}
