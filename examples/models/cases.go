package main

import (
	"fmt"

	"waybill.dev/waybill/test/double/anthropic"
)

// scene is a case: a workflow of the same name, and the answers of the vendor's model.
type scene struct {
	name    string
	title   string
	replies []anthropic.Reply
	// story explains what happened and why, with values from the log.
	story func(facts) string
}

const (
	ticket = `{"team":"billing","urgent":true,"summary":"Charged twice; wants the money back.","orderNumber":"A-4711"}`
	// wrongTicket breaks the pattern of orderNumber. The vendor's strict mode does not support
	// patterns, so only validation enforces it.
	wrongTicket = `{"team":"billing","urgent":true,"summary":"Charged twice; wants the money back.","orderNumber":"4711"}`
	declines    = "This request asks for personal data of other people."
)

func reply(text string) anthropic.Reply { return anthropic.Reply{Pieces: []string{text}} }

var cases = []scene{
	{
		name: "substituted", title: "the model lacks a required capability, and the fallback is called",
		replies: []anthropic.Reply{reply(ticket)},
		story: func(t facts) string {
			const e = "model.capability.substituted"
			return fmt.Sprintf("%s/%s lacks %s, which the node requires, so its fallback %s/%s was called. The log records that before the node starts.",
				t.at(e, "originalProvider"), t.at(e, "originalModel"), t.at(e, "missingCapabilities"), t.at(e, "fallbackProvider"), t.at(e, "fallbackModel"))
		},
	},
	{
		name: "insufficient", title: "the model lacks a required capability, and there is no fallback",
		story: func(t facts) string {
			const e = "model.capability.insufficient"
			return fmt.Sprintf("%s/%s lacks %s, and the node has no fallback. The node failed before it started: no model was called, and no tokens were paid for.",
				t.at(e, "provider"), t.at(e, "model"), t.at(e, "missingCapabilities"))
		},
	},
	{
		name: "truncated", title: "the answer is truncated, and retried with a larger budget",
		replies: []anthropic.Reply{reply(ticket), reply(ticket)},
		story: func(t facts) string {
			return fmt.Sprintf("The answer was truncated after %s tokens, the node's maxTokens. The same request was sent again with twice the budget, and the answer took %s tokens.",
				t.at("envelope.truncated", "outputTokenCount"), t.last("provider.usage", "outputTokens"))
		},
	},
	{
		name: "corrected", title: "the answer violates the schema, and the retry lists the violations",
		replies: []anthropic.Reply{reply(wrongTicket), reply(ticket)},
		story: func(t facts) string {
			const e = "envelope.retry.attempted"
			return fmt.Sprintf("The first answer violated the schema: %s. The prompt of attempt %s had this violation and the same budget, and its answer was accepted.",
				t.at(e, "previousError"), t.at(e, "attempt"))
		},
	},
	{
		name: "refused", title: "the model declines to answer",
		replies: []anthropic.Reply{{Refusal: &anthropic.Refusal{Category: "privacy", Explanation: declines}}},
		story: func(t facts) string {
			const e = "envelope.refusal"
			return fmt.Sprintf("%s/%s declined. Refusals are final: it was not called again, although the workflow allows two retries of the node.",
				t.at(e, "provider"), t.at(e, "model"))
		},
	},
}
