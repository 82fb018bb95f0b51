package model

import (
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// fitToModel fits the request to the model that is asked, as far as the catalogue knows it:
// how it is held to a schema, how long its answers may be, and whether it lets anybody
// choose how it samples. A model of which nothing is known gets the request as it is.
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
		// The model refuses requests that say so much as its own default.
		c.req.Temperature, c.req.TopP = nil, nil
	}
	if len(c.req.Schema) == 0 {
		return
	}
	switch e.StructuredOutput {
	case catalogue.StructuredTool:
		c.req.Via = provider.ViaTool
	case catalogue.StructuredNone:
		// Nothing holds the model to the schema but its own good will.
		c.req.System += "\n\nJSON Schema of the document:\n" + string(c.req.Schema)
		c.req.Schema = nil
	}
}

// capTokens bounds an output budget by what the model can say (OpenWOP envelope contract
// §14.3, ceiling).
func (c *call) capTokens(tokens int) int {
	tokens = min(tokens, maxTokens)
	if c.ceiling > 0 {
		return min(tokens, c.ceiling)
	}
	return tokens
}

// atOutputCeiling reports that an answer was cut off with all the room that the model has: more
// cannot be given, and less would not help.
func (c *call) atOutputCeiling(f failure) bool {
	return f.reason == reasonTruncation && c.ceiling > 0 && c.req.MaxTokens >= c.ceiling
}
