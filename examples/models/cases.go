package main

import (
	"fmt"

	"waybill.dev/waybill/test/double/anthropic"
)

// scene is a case: a workflow of the same name, and the answers of the vendor's model.
type scene struct {
	name  string
	title string
	says  []anthropic.Reply
	// story explains in a sentence or two what happened and why, with values from the log.
	story func(told) string
}

const (
	ticket = `{"team":"billing","urgent":true,"summary":"Charged twice; wants the money back.","orderNumber":"A-4711"}`
	// wrongTicket breaks the pattern of orderNumber. The vendor's strict mode does not support
	// patterns, so only validation enforces it.
	wrongTicket = `{"team":"billing","urgent":true,"summary":"Charged twice; wants the money back.","orderNumber":"4711"}`
	declines    = "This request asks for personal data of other people."
)

func says(text string) anthropic.Reply { return anthropic.Reply{Pieces: []string{text}} }

var cases = []scene{
	{
		name: "substituted", title: "the model lacks what the node requires, and another one is asked",
		says: []anthropic.Reply{says(ticket)},
		story: func(t told) string {
			const e = "model.capability.substituted"
			return fmt.Sprintf("%s/%s lacks %s, which the node requires, so its fallback %s/%s was asked. The log says so before the node starts.",
				t.at(e, "originalProvider"), t.at(e, "originalModel"), t.at(e, "missingCapabilities"), t.at(e, "fallbackProvider"), t.at(e, "fallbackModel"))
		},
	},
	{
		name: "insufficient", title: "the model lacks what the node requires, and there is no other",
		story: func(t told) string {
			const e = "model.capability.insufficient"
			return fmt.Sprintf("%s/%s lacks %s, and the node names no fallback. It was refused before it started: no model was asked, and nothing was paid for.",
				t.at(e, "provider"), t.at(e, "model"), t.at(e, "missingCapabilities"))
		},
	},
	{
		name: "truncated", title: "the answer is cut off, and gets more room",
		says: []anthropic.Reply{says(ticket), says(ticket)},
		story: func(t told) string {
			return fmt.Sprintf("The model was cut off after %s tokens, all that the node's maxTokens gave it. It was asked the same again with twice the room, and needed %s.",
				t.at("envelope.truncated", "outputTokenCount"), t.last("provider.usage", "outputTokens"))
		},
	},
	{
		name: "corrected", title: "the answer breaks the schema, and the model is told where",
		says: []anthropic.Reply{says(wrongTicket), says(ticket)},
		story: func(t told) string {
			const e = "envelope.retry.attempted"
			return fmt.Sprintf("The first answer was no ticket: %s. Attempt %s was told that, in the schema's words and with the same room, and its answer fits.",
				t.at(e, "previousError"), t.at(e, "attempt"))
		},
	},
	{
		name: "refused", title: "the model declines to answer",
		says: []anthropic.Reply{{Refusal: &anthropic.Refusal{Category: "privacy", Explanation: declines}}},
		story: func(t told) string {
			const e = "envelope.refusal"
			return fmt.Sprintf("%s/%s declined. That is final: it was not asked again, though the workflow allows two retries of the node.",
				t.at(e, "provider"), t.at(e, "model"))
		},
	},
}
