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

// thinker is the name of an OpenAI model that thinks before it answers, a tuned
// one's too. The names are the only thing that tells: no endpoint says it.
var thinker = regexp.MustCompile(`^(ft:)?(o\d|gpt-([5-9]|[12]\d))`)

// thinks reports whether an OpenAI model is of those that think, and that refuse
// temperature, top_p and stop sequences. The chat models of these families do not.
func (d Dialect) thinks(model string) bool {
	return d == DialectOpenAI && thinker.MatchString(model) && !strings.Contains(model, "-chat")
}

// speaks reports whether an OpenAI model answers in sound: its name asks for it.
func (d Dialect) speaks(model string) bool {
	return d == DialectOpenAI && strings.Contains(model, "audio")
}
