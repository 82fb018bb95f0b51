package compat

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/openai/openai-go/v3/option"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Dialect is a variant of Chat Completions.
type Dialect string

// The dialects.
const (
	// DialectCompatible is for servers that follow OpenAI's API: older names of members, and all
	// parameters.
	DialectCompatible Dialect = ""
	// DialectOpenAI is for OpenAI itself.
	DialectOpenAI Dialect = "openai"
	// DialectAzure is for OpenAI's models on Azure: a deployment has the name of the model and is part
	// of the path, and the key has a header of its own.
	DialectAzure Dialect = "azure-openai"
)

// isOpenAI reports whether the models are OpenAI's own.
func (d Dialect) isOpenAI() bool { return d == DialectOpenAI || d == DialectAzure }

// withKey returns the option that sends a key.
func (d Dialect) withKey(key provider.Secret) option.RequestOption {
	if d == DialectAzure {
		return option.WithHeader("Api-Key", string(key))
	}
	return option.WithAPIKey(string(key))
}

// deploymentURL returns the address of a deployment on Azure.
func deploymentURL(base, deployment string) string {
	return strings.TrimSuffix(base, "/") + "/openai/deployments/" + url.PathEscape(deployment) + "/"
}

// Defaults of a Config.
const (
	// DefaultID is the default id of a compatible server.
	DefaultID = "compat"
	// OpenAIID is OpenAI's id.
	OpenAIID = "openai"
	// OpenAIBaseURL is OpenAI's address.
	OpenAIBaseURL = "https://api.openai.com/v1"
	// DefaultVoice is the default voice of audio models.
	DefaultVoice = "alloy"
)

// efforts are the vendor's values for the reasoning effort.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// Names of OpenAI's reasoning models, including tuned ones, and of those that reason only on
// request. No endpoint provides this, so the name is the only source.
var (
	reasoning = regexp.MustCompile(`^(ft:)?(o\d|gpt-([5-9]|[12]\d))`)
	optIn     = regexp.MustCompile(`^(ft:)?gpt-5\.[1-4]`)
)

// canThink reports whether a model is an OpenAI reasoning model. The chat models of these families
// are not.
func (d Dialect) canThink(model string) bool {
	return d.isOpenAI() && reasoning.MatchString(model) && !strings.Contains(model, "-chat")
}

// isReasoning reports whether an OpenAI model reasons and therefore rejects temperature, top_p and
// stop sequences. The host's catalogue takes precedence; this covers unknown models.
func (c Config) isReasoning(model string) bool {
	if optIn.MatchString(model) && (c.ReasoningEffort == "" || c.ReasoningEffort == "none") {
		return false
	}
	return c.Dialect.canThink(model)
}

// answersInAudio reports whether an OpenAI model answers in sound, by its name.
func (d Dialect) answersInAudio(model string) bool {
	return d.isOpenAI() && strings.Contains(model, "audio")
}
