// Package provider is the port to models: one request, one streamed answer.
//
// An adapter connects one kind of server. It converts the request, passes text on while it arrives,
// and classifies the end of the answer. Retries, validation and recording belong to the caller.
//
// Every adapter passes the suite in providertest.
package provider

import (
	"context"
	"encoding/json"
)

// MaxAnswerBytes limits one answer: its text, refusal, tool arguments, thoughts and media (as
// base64) together. A longer one ends the call with CodeContentTooLong, so that an endless answer
// cannot exhaust the host's memory. It has room for the largest asset, 8 MiB of base64, and its
// envelope.
const MaxAnswerBytes = 9 << 20

// Message is one turn of the conversation.
type Message struct {
	// Role is system, user, assistant or tool.
	Role string
	// Content is a JSON string, or an array of content blocks, verbatim.
	Content json.RawMessage
}

// Request is one model call. Adapters do not modify it.
type Request struct {
	Provider, Model string
	// System precedes the messages; empty for none.
	System   string
	Messages []Message
	// Schema is the JSON Schema of the answer; nil for free text.
	Schema json.RawMessage
	// AsWritten means that Schema is the author's, not one in a strict mode's dialect.
	AsWritten bool
	// Via is how the vendor gets the schema; empty uses its response format.
	Via SchemaVia
	// SchemaName is the schema's name at the vendor: [a-zA-Z0-9_-]{1,64}, the same for the same
	// schema. Empty means "answer".
	SchemaName string
	// MaxTokens limits the answer; 0 uses the model's limit.
	MaxTokens   int
	Temperature *float64
	TopP        *float64
	Seed        *int64
	Stop        []string
	// Thoughts requests the model's thinking in Delta.Thought, if it has any.
	Thoughts bool
	// Credential is the tenant's own key for this call; empty uses the host's.
	Credential Secret
	// Tenant and NodeID select scripts of the test seams. They are never sent to a vendor.
	Tenant, NodeID string
	// Timeouts limit the call; zero values use the adapter's. The caller enforces Call.
	Timeouts Timeouts
	// InvocationID is sent as the vendor's idempotency key, if supported.
	InvocationID string
	// Traceparent is the W3C trace context of the call; empty for none.
	Traceparent string
}

// SchemaVia is the form in which a model gets a schema. In each, the answer is the Result's Text.
type SchemaVia string

// The forms. The first two are strict. With the others, the schema is in the prompt and
// Request.Schema is nil.
const (
	// ViaFormat uses the vendor's response format.
	ViaFormat SchemaVia = ""
	// ViaTool forces the model to call a tool: its arguments are the answer.
	ViaTool SchemaVia = "tool"
	// ViaObject uses the vendor's response format for any JSON object.
	ViaObject SchemaVia = "json_object"
	// ViaWords leaves the answer's format to the prompt.
	ViaWords SchemaVia = "words"
)

// Name is the form's name in events, logs and spans.
func (v SchemaVia) Name() string {
	if v == ViaFormat {
		return "json_schema"
	}
	return string(v)
}

// SchemaForms is a provider whose servers may refuse a form of schemas.
type SchemaForms interface {
	// SchemaForms lists the forms that the adapter can send to a model, the strictest first.
	SchemaForms(model string) []SchemaVia
}

// StopClass is how an answer ended (OpenWOP envelope contract §14.1).
type StopClass string

// The classes of stops.
const (
	// StopClean means that the model ended by itself.
	StopClean StopClass = "clean"
	// StopTruncated means that the output budget ended the answer.
	StopTruncated StopClass = "truncated"
	// StopRefused means that the model or its filter declined.
	StopRefused StopClass = "refused"
	// StopSequence means that a stop sequence of the request ended the answer.
	StopSequence StopClass = "stop_sequence"
	// StopUnknown means that the protocol does not list the server's reason.
	StopUnknown StopClass = "unknown"
)

// Usage counts tokens as reported by the provider.
type Usage struct {
	InputTokens, OutputTokens, TotalTokens int
	// CacheReadTokens and CacheWriteTokens are the part of the input that was
	// read from, or written to, the vendor's prompt cache.
	CacheReadTokens, CacheWriteTokens int
	// ReasoningTokens is the part of the output that the model used to think; nil if unknown.
	ReasoningTokens *int
	// CacheApart means that InputTokens excludes these, as the vendor reports it.
	CacheApart bool
	// Known is false if the provider reported nothing; all counts are then 0.
	Known bool
}

// maxTokenCount limits a reported count. JSON readers keep such numbers exactly, also in the sum of
// all counts.
const maxTokenCount = 1 << 50

// clamped returns the counts limited to possible values (OpenWOP envelope contract §19.1).
func (u Usage) clamped() Usage {
	if !u.Known {
		return Usage{}
	}
	for _, n := range []*int{&u.InputTokens, &u.OutputTokens, &u.TotalTokens, &u.CacheReadTokens, &u.CacheWriteTokens} {
		*n = min(max(*n, 0), maxTokenCount)
	}
	if r := u.ReasoningTokens; r != nil && (*r < 0 || *r > u.OutputTokens) { // a wrong count is unknown
		u.ReasoningTokens = nil
	}
	return u
}

// ToolCall is a tool call requested by the model.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is JSON text as written by the model; it may be malformed.
	Arguments string `json:"arguments"`
}

// Media is a generated image or sound.
type Media struct {
	// MIME is its type, such as image/png.
	MIME string
	Data []byte
}

// Result is a complete answer.
type Result struct {
	// Text is the joined text of all deltas, unless Corrected is set.
	Text string
	// Corrected means that the server sent another whole text after its pieces, which is the Text.
	Corrected bool
	// Thought means that the server sent thinking apart from the text, requested or not.
	Thought bool
	// Interim means that the model called a tool that it was not offered: its Text only precedes what the
	// tool returns.
	Interim bool
	Stop    StopClass
	// RawStop is the provider's own stop reason.
	RawStop string
	// RefusalText is the model's refusal. It may quote the prompt. After redaction it is recorded
	// in the refusal event only.
	RefusalText string
	// SafetyCategory is the provider's category of a refusal, verbatim.
	SafetyCategory string
	ToolCalls      []ToolCall
	// Media are the images and sounds of the answer, in order.
	Media []Media
	Usage Usage
	// Model is the model that answered, as named by the provider.
	Model string
}

// Delta is a streamed piece of an answer.
type Delta struct {
	// Text may be empty in a tool call, a thought, and the last piece.
	Text string
	// Token means that the text is one token and must be shown as one.
	Token bool
	// Thought is a piece of the model's thinking, which is not part of the answer.
	Thought   string
	ToolCalls []ToolCall
	// Last marks the final piece; exactly one piece of a completed call has it.
	Last bool
	// FinishReason is stop, length, tool_calls or content_filter on the last piece; empty for an
	// unknown stop.
	FinishReason string
	// Usage is set on the last piece, if known.
	Usage *Usage
	Model string
}

// Provider calls one kind of server. Implementations are safe for concurrent use.
type Provider interface {
	// ID is the provider's id in workflows. It never changes.
	ID() string
	// Call makes one call and never retries.
	//
	// emit, which may be nil, gets every piece in order, in the calling goroutine. The joined texts
	// of the pieces are the Result's Text, unless the server corrects them. An error of emit aborts the
	// call and is returned unchanged.
	//
	// When ctx ends, Call soon returns an error that matches ctx.Err(). Every other failure is an
	// *Error. Refusals and truncations are not failures.
	Call(ctx context.Context, req Request, emit func(Delta) error) (Result, error)
}
