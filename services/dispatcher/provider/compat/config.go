package compat

import (
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// Config describes a server.
type Config struct {
	// Dialect is the API variant of the server; empty means DialectCompatible.
	Dialect Dialect
	// Responses selects the Responses API instead of Chat Completions. Azure's deployments have it at
	// the address of a compatible server.
	Responses bool
	// ID is the provider's id in workflows; empty uses the dialect's default.
	ID string
	// BaseURL is the server's address including the version, such as http://127.0.0.1:11434/v1.
	// Empty uses OpenAI's address in its dialect.
	BaseURL string
	// APIKey may be empty: many self-hosted servers need none, and OpenAI can be called with
	// tenants' keys only.
	APIKey provider.Secret
	// KeyName says where the key is set, such as an environment variable, for error messages.
	KeyName string
	// Models are the allowed models; empty allows any.
	Models []string
	// ReasoningEffort is the effort of reasoning models: none, minimal, low, medium, high, xhigh or
	// max; models support different subsets. Empty uses the model's default.
	ReasoningEffort string
	// Voice is the voice of OpenAI's audio models; empty uses DefaultVoice.
	Voice string
	// Timeout limits the first byte of the answer and each silence if the request sets no limits; 0
	// uses the defaults. The caller's context limits the whole call.
	Timeout time.Duration
	// Extras are added to every request.
	Extras outbound.Extras
}

// Validate returns all problems, joined. Each names the field, its value and the remedy.
func (c Config) Validate() error {
	var more []outbound.Finding
	if !slices.Contains([]Dialect{DialectCompatible, DialectOpenAI, DialectAzure}, c.Dialect) {
		more = append(more, outbound.Finding{
			Field:  "dialect",
			Value:  string(c.Dialect),
			Remedy: "want openai, azure-openai, or nothing for a compatible server",
		})
	}
	if c.ReasoningEffort != "" && !slices.Contains(efforts, c.ReasoningEffort) {
		more = append(more, outbound.Finding{
			Field:  "reasoning_effort",
			Value:  c.ReasoningEffort,
			Remedy: "want one of " + strings.Join(efforts, ", ") + ", or nothing for the model's own",
		})
	}
	return c.server().Validate(c.Dialect.rules(), more...)
}

func (c Config) server() outbound.Server {
	return outbound.Server{
		ID:      c.ID,
		BaseURL: c.BaseURL,
		APIKey:  c.APIKey,
		KeyName: c.KeyName,
		Models:  c.Models,
		Timeout: c.Timeout,
		Extras:  c.Extras,
	}.WithDefaults(c.Dialect.rules())
}

// rules returns the rules of a dialect's servers.
func (d Dialect) rules() outbound.Rules {
	r := outbound.Rules{ID: DefaultID, Form: "http(s)://host[:port]/path", Example: "http://127.0.0.1:11434/v1"}
	switch d {
	case DialectOpenAI:
		r.ID, r.BaseURL = OpenAIID, OpenAIBaseURL
	case DialectAzure:
		r.Example, r.Adds = "https://NAME.openai.azure.com", "/openai"
	case DialectCompatible:
	}
	return r
}
