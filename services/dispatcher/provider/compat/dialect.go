package compat

import (
	"regexp"
	"strings"
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
)

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
	return d == DialectOpenAI && reasoning.MatchString(model) && !strings.Contains(model, "-chat")
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
	return d == DialectOpenAI && strings.Contains(model, "audio")
}
