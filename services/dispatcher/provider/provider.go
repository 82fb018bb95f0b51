// Package provider is the port to models: one question, one streamed answer.
//
// An adapter below it speaks to one kind of server. It puts the question in the
// server's words, hands the text on while it arrives, and classifies how the
// answer ended. Retrying, validating and recording are the caller's.
//
// Every adapter passes the suite in providertest.
package provider

import (
	"context"
	"encoding/json"
)

// MaxAnswerBytes bounds one answer: its text, refusal, tool arguments, thoughts and
// media (as base64) together. A longer one ends the call with CodeContentTooLong, so that a model
// that does not stop cannot fill the host's memory. It has room for the largest
// asset, 8 MiB of base64, and the envelope around it.
const MaxAnswerBytes = 9 << 20

// Message is one turn of the conversation.
type Message struct {
	// Role is system, user, assistant or tool.
	Role string
	// Content is a JSON string, or an array of content blocks, verbatim.
	Content json.RawMessage
}

// Request is one call to a model. Adapters read it and change nothing of it.
type Request struct {
	Provider, Model string
	// System comes before the messages; empty for none.
	System   string
	Messages []Message
	// Schema is the JSON Schema the answer must satisfy; nil for free text.
	Schema json.RawMessage
	// Via is how the schema is put to the vendor; empty: its response format.
	Via SchemaVia
	// SchemaName names the schema to the vendor: [a-zA-Z0-9_-]{1,64}, the same
	// for the same schema. Empty means "answer".
	SchemaName string
	// MaxTokens bounds the answer; 0 leaves it to the model.
	MaxTokens   int
	Temperature *float64
	TopP        *float64
	Seed        *int64
	Stop        []string
	// Thoughts asks for the model's thinking to be told while it thinks, where the
	// model has any (Delta.Thought).
	Thoughts bool
	// Credential is the tenant's own key for this call; empty: the host's.
	Credential Secret
	// Tenant and NodeID route scripts of the test seams; they are never sent to a
	// vendor.
	Tenant, NodeID string
	// Timeouts limit the call; zero limits use the adapter's. The caller enforces Call.
	Timeouts Timeouts
	// InvocationID is sent as the vendor's idempotency key where there is one.
	InvocationID string
	// Traceparent is the W3C trace context of the call; empty: none.
	Traceparent string
}

// SchemaVia is a vendor's way to hold an answer to a schema. In both the schema is
// strict, and the answer is the Result's Text.
type SchemaVia string

// The ways.
const (
	// ViaFormat is the vendor's response format.
	ViaFormat SchemaVia = ""
	// ViaTool is a tool that the model is forced to call: its arguments are the answer.
	ViaTool SchemaVia = "tool"
)

// StopClass is how an answer ended (OpenWOP envelope contract §14.1).
type StopClass string

// The classes of stops.
const (
	// StopClean: the model ended by itself.
	StopClean StopClass = "clean"
	// StopTruncated: the output budget ended the answer.
	StopTruncated StopClass = "truncated"
	// StopRefused: the model or its filter declined.
	StopRefused StopClass = "refused"
	// StopSequence: one of the request's stop sequences ended the answer.
	StopSequence StopClass = "stop_sequence"
	// StopUnknown: the server gave a reason the protocol does not list.
	StopUnknown StopClass = "unknown"
)

// Usage counts tokens as the provider told them.
type Usage struct {
	InputTokens, OutputTokens, TotalTokens int
	// CacheReadTokens and CacheWriteTokens are the part of the input that was
	// read from, or written to, the vendor's prompt cache.
	CacheReadTokens, CacheWriteTokens int
	// CacheApart says that InputTokens does not count these, as the vendor tells it.
	CacheApart bool
	// Known is false when the provider told nothing; then all counts are 0.
	Known bool
}

// maxTokenCount bounds what is believed of a count: a number that JSON readers keep,
// also in a sum of all of them.
const maxTokenCount = 1 << 50

// clamped are the counts as they can be, whatever the server said (OpenWOP envelope
// contract §19.1).
func (u Usage) clamped() Usage {
	if !u.Known {
		return Usage{}
	}
	for _, n := range []*int{&u.InputTokens, &u.OutputTokens, &u.TotalTokens, &u.CacheReadTokens, &u.CacheWriteTokens} {
		*n = min(max(*n, 0), maxTokenCount)
	}
	return u
}

// ToolCall is a tool the model wants called.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is JSON text as the model wrote it; it may be malformed.
	Arguments string `json:"arguments"`
}

// Media is an image or a sound that a model made.
type Media struct {
	// MIME is its type, such as image/png.
	MIME string
	Data []byte
}

// Result is a whole answer.
type Result struct {
	// Text is what all deltas said, joined.
	Text string
	Stop StopClass
	// RawStop is the provider's own word for the stop.
	RawStop string
	// RefusalText is the model's own refusal. It may quote the prompt: it belongs
	// in the refusal event after redaction and nowhere else.
	RefusalText string
	// SafetyCategory is the provider's category of a refusal, verbatim.
	SafetyCategory string
	ToolCalls      []ToolCall
	// Media are the images and sounds of the answer, in order.
	Media []Media
	Usage Usage
	// Model is the one that answered, as the provider names it.
	Model string
}

// Delta is a piece of an answer as it arrives.
type Delta struct {
	// Text may be empty: in a tool call, in a thought, and in the last piece.
	Text string
	// Token says that the text is one token, and to be shown as one.
	Token bool
	// Thought is a piece of the model's thinking: no part of the answer.
	Thought   string
	ToolCalls []ToolCall
	// Last marks the final piece; exactly one piece of a completed call has it.
	Last bool
	// FinishReason is stop, length, tool_calls or content_filter on the last
	// piece, and empty there if the stop is of an unknown kind.
	FinishReason string
	// Usage is set on the last piece, when known.
	Usage *Usage
	Model string
}

// Provider asks one kind of server. Implementations are safe for concurrent use.
type Provider interface {
	// ID is the name workflows call the provider by; it never changes.
	ID() string
	// Call asks once and never retries.
	//
	// emit, which may be nil, gets every piece in order, in the calling
	// goroutine; the pieces' texts joined are the Result's Text. An error of emit
	// aborts the call and is returned as it is.
	//
	// When ctx ends, Call returns soon with an error that matches ctx.Err().
	// Every other failure is an *Error. A refusal or a truncation is no failure.
	Call(ctx context.Context, req Request, emit func(Delta) error) (Result, error)
}
