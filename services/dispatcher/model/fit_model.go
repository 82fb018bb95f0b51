package model

import (
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// fitToModel adapts the request to the catalogue's entry of the model: schema enforcement, answer
// length and sampling. The request of an unknown model stays unchanged.
func (c *call) fitToModel() {
	if c.generatesMedia() {
		c.req.Schema, c.req.System = nil, c.authorSystem
	}
	e, ok := c.deps.Catalogue.Lookup(c.req.Provider, c.req.Model)
	if !ok {
		return
	}
	c.ceiling = e.OutputTokens
	c.req.MaxTokens = c.capTokens(c.req.MaxTokens)
	if e.Sampling != nil && !*e.Sampling {
		// The model rejects any sampling parameter, even its own default.
		c.req.Temperature, c.req.TopP = nil, nil
	}
	if len(c.req.Schema) == 0 {
		return
	}
	switch e.StructuredOutput {
	case catalogue.StructuredTool:
		c.req.Via = provider.ViaTool
	case catalogue.StructuredNone:
		// The vendor does not enforce schemas for this model.
		c.req.System += "\n\nJSON Schema of the document:\n" + string(c.req.Schema)
		c.req.Schema = nil
	}
}

// capTokens limits an output budget to the model's longest answer (OpenWOP envelope contract §14.3,
// ceiling).
func (c *call) capTokens(tokens int) int {
	tokens = min(tokens, maxTokens)
	if c.ceiling > 0 {
		return min(tokens, c.ceiling)
	}
	return tokens
}

// atOutputCeiling reports whether an answer was truncated with the model's largest budget: another
// attempt cannot get more.
func (c *call) atOutputCeiling(f failure) bool {
	return f.reason == reasonTruncation && c.ceiling > 0 && c.req.MaxTokens >= c.ceiling
}
