package compat

import (
	"regexp"
	"strings"
)

// Dialect is whose rules of Chat Completions a server has.
type Dialect string

// The dialects.
const (
	// DialectCompatible is that of servers that follow OpenAI's API: older names
	// of members, and whatever their models take.
	DialectCompatible Dialect = ""
	// DialectOpenAI is that of OpenAI itself.
	DialectOpenAI Dialect = "openai"
)

// What a Config means that does not say it.
const (
	// DefaultID is the provider's id when there is but one compatible server.
	DefaultID = "compat"
	// OpenAIID is OpenAI's id.
	OpenAIID = "openai"
	// OpenAIBaseURL is OpenAI's address.
	OpenAIBaseURL = "https://api.openai.com/v1"
	// DefaultVoice is the voice of models that speak.
	DefaultVoice = "alloy"
)

// efforts are the vendor's words for how much a model thinks.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// The names of OpenAI's models that can think before they answer, tuned ones' too,
// and of those among them that do so only when they are asked to. The names are the
// only thing that tells: no endpoint says it.
var (
	reasoning = regexp.MustCompile(`^(ft:)?(o\d|gpt-([5-9]|[12]\d))`)
	optIn     = regexp.MustCompile(`^(ft:)?gpt-5\.[1-4]`)
)

// canThink reports whether a model is one of OpenAI's that can think. The chat models
// of these families do not.
func (d Dialect) canThink(model string) bool {
	return d == DialectOpenAI && reasoning.MatchString(model) && !strings.Contains(model, "-chat")
}

// isReasoning reports whether a model of OpenAI's thinks, and so refuses temperature, top_p
// and stop sequences. What a host's catalogue says of models is used before; this
// holds for those it does not know.
func (c Config) isReasoning(model string) bool {
	if optIn.MatchString(model) && (c.ReasoningEffort == "" || c.ReasoningEffort == "none") {
		return false
	}
	return c.Dialect.canThink(model)
}

// answersInAudio reports whether an OpenAI model answers in sound: its name asks for it.
func (d Dialect) answersInAudio(model string) bool {
	return d == DialectOpenAI && strings.Contains(model, "audio")
}
