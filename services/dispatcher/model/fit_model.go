package model

import (
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// fitToModel adapts a request to the catalogue's entry of its model: schema enforcement, answer
// length and sampling. The request of an unknown model stays unchanged. ceiling is the model's
// longest answer in tokens; 0 if unknown.
func (l *Loop) fitToModel(req provider.Request) (fitted provider.Request, ceiling int) {
	e, ok := l.deps.Catalogue.Lookup(req.Provider, req.Model)
	if !ok {
		return req, 0
	}
	req.MaxTokens = capTokens(req.MaxTokens, e.OutputTokens)
	if e.Sampling != nil && !*e.Sampling {
		// The model rejects any sampling parameter, even its own default.
		req.Temperature, req.TopP = nil, nil
	}
	if len(req.Schema) == 0 {
		return req, e.OutputTokens
	}
	switch e.StructuredOutput {
	case catalogue.StructuredTool:
		req.Via = provider.ViaTool
	case catalogue.StructuredNone: // the vendor does not enforce schemas for this model
		req.Via = provider.ViaWords
	}
	return req, e.OutputTokens
}

// capTokens limits an output budget to the model's longest answer (OpenWOP envelope contract §14.3,
// ceiling). An unknown ceiling is 0.
func capTokens(tokens, ceiling int) int {
	tokens = min(tokens, maxTokens)
	if ceiling > 0 {
		return min(tokens, ceiling)
	}
	return tokens
}

// atOutputCeiling reports whether a budget is the model's largest: after a truncation, another
// attempt cannot get more.
func atOutputCeiling(tokens, ceiling int) bool { return ceiling > 0 && tokens >= ceiling }
