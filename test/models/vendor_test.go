package models

import (
	"encoding/json"
	"net/http"

	"waybill.dev/waybill/test/double/anthropic"
	"waybill.dev/waybill/test/double/gemini"
	"waybill.dev/waybill/test/double/openaicompat"
)

// vendor is one double, with its vendor's request and reply format.
type vendor struct {
	id, key, url string
	// seeing accepts pictures and schemas as a format; blind accepts schemas as a tool.
	seeing, blind string
	desk          *desk
	close         func()
	// keyOf returns the key of a request.
	keyOf func(http.Header) string
	// read parses the parts of a request that all vendors have.
	read func(body []byte) (parsedRequest, error)
	// sequences means that the vendor distinguishes a stop sequence from a normal end.
	sequences bool
	unknown   string // an unknown stop reason
}

// parsedRequest is a parsed request, independent of the vendor.
type parsedRequest struct {
	budget int
	// text is all text sent to the model.
	text string
	// schema is the strict schema; empty if there is none.
	schema json.RawMessage
	tool   bool
}

const (
	// secretWords occur in the vendors' refusals and wrong answers. They must not be in a run's log,
	// except in the event of a refusal.
	secretWords = "xyzzy plugh"
	// serverMessage is the message of the vendors' errors. It ends the message of a call's error.
	serverMessage = "the cluster is on fire"
)

func openAll() []*vendor {
	return []*vendor{openOpenAI(), openAnthropic(), openGemini()}
}

func openOpenAI() *vendor {
	v := &vendor{
		id: "openai", key: "sk-double-openai-0a1b2c3d4e5f", seeing: "gpt-4o", blind: "gpt-4o-mini", desk: newDesk(), unknown: "function_call",
		keyOf: func(h http.Header) string { return trimBearer(h.Get("Authorization")) }, read: readOpenAI,
	}
	s := openaicompat.New(openaicompat.Options{
		OpenAI: true, RequireSchema: true, Models: []string{v.seeing, v.blind},
		Answer: func(r openaicompat.Recorded) openaicompat.Reply {
			return openaiReply(v.desk.answer(r.Header, r.Body), v)
		},
	})
	v.url, v.close = s.URL(), s.Close
	return v
}

func openaiReply(a answer, v *vendor) openaicompat.Reply {
	r := openaicompat.Reply{
		Pieces: a.pieces(), Usage: &openaicompat.Usage{Prompt: a.in, Completion: a.out, Reasoning: a.thoughts}, Status: a.status, RetryAfter: a.retryAfter,
		Message: serverMessage, Step: a.step, End: a.end, Raw: a.raw, ContentType: a.rawType,
	}
	switch a.stop {
	case refused:
		r.Pieces, r.Refusal = nil, secretWords
	case unknown:
		r.FinishReason = v.unknown
	case clean, sequence: // the vendor uses one reason for both
	}
	if a.end == failing {
		r.Code = "server_error"
	}
	return r
}

func readOpenAI(body []byte) (parsedRequest, error) {
	var r struct {
		MaxTokens int             `json:"max_completion_tokens"`
		OldTokens int             `json:"max_tokens"`
		Messages  json.RawMessage `json:"messages"`
		Format    struct {
			JSONSchema struct {
				Strict bool            `json:"strict"`
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
		Tools []struct {
			Function struct {
				Strict     bool            `json:"strict"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	err := json.Unmarshal(body, &r)
	a := parsedRequest{budget: max(r.MaxTokens, r.OldTokens), text: string(r.Messages)}
	switch {
	case r.Format.JSONSchema.Strict:
		a.schema = r.Format.JSONSchema.Schema
	case len(r.Tools) == 1 && r.Tools[0].Function.Strict:
		a.schema, a.tool = r.Tools[0].Function.Parameters, true
	}
	return a, err
}

func openAnthropic() *vendor {
	v := &vendor{
		id: "anthropic", key: "sk-double-anthropic-5f6a7b8c9d0e", seeing: "claude-opus-4-6", blind: "claude-haiku-4-5", desk: newDesk(),
		keyOf: func(h http.Header) string { return h.Get("X-Api-Key") }, read: readAnthropic, sequences: true, unknown: "pause_turn",
	}
	s := anthropic.New(anthropic.Options{
		RequireSchema: true, Models: []string{v.seeing, v.blind},
		Answer: func(r anthropic.Recorded) anthropic.Reply { return anthropicReply(v.desk.answer(r.Header, r.Body), v) },
	})
	v.url, v.close = s.URL(), s.Close
	return v
}

func anthropicReply(a answer, v *vendor) anthropic.Reply {
	r := anthropic.Reply{
		Pieces: a.pieces(), Usage: &anthropic.Usage{Input: a.in, Output: a.out, Thinking: a.thoughts}, Status: a.status, RetryAfter: a.retryAfter,
		Message: serverMessage, Step: a.step, End: a.end, Raw: a.raw, ContentType: a.rawType,
	}
	switch a.stop {
	case refused:
		r.Pieces, r.Refusal = nil, &anthropic.Refusal{Category: "cyber", Explanation: secretWords}
	case unknown:
		r.StopReason = v.unknown
	case sequence:
		r.StopSequence = "END"
	case clean:
	}
	if a.end == failing {
		r.Type = "overloaded_error"
	}
	return r
}

func readAnthropic(body []byte) (parsedRequest, error) {
	var r struct {
		MaxTokens int             `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  json.RawMessage `json:"messages"`
		Output    struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"output_config"`
		Tools []struct {
			Strict bool            `json:"strict"`
			Schema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
	}
	err := json.Unmarshal(body, &r)
	a := parsedRequest{budget: r.MaxTokens, text: string(r.System) + string(r.Messages), schema: r.Output.Format.Schema}
	if len(r.Tools) == 1 && r.Tools[0].Strict {
		a.schema, a.tool = r.Tools[0].Schema, true
	}
	return a, err
}

func openGemini() *vendor {
	v := &vendor{
		id: "gemini", key: "AIza-double-gemini-1f2e3d4c5b6a7988", seeing: "gemini-2.5-flash", blind: "gemini-2.5-flash-lite", desk: newDesk(), unknown: "OTHER",
		keyOf: func(h http.Header) string { return h.Get("X-Goog-Api-Key") }, read: readGemini,
	}
	s := gemini.New(gemini.Options{
		RequireSchema: true, Models: []string{v.seeing, v.blind},
		Answer: func(r gemini.Recorded) gemini.Reply { return geminiReply(v.desk.answer(r.Header, r.Body), v, r.Body) },
	})
	v.url, v.close = s.URL(), s.Close
	return v
}

func geminiReply(a answer, v *vendor, body []byte) gemini.Reply {
	r := gemini.Reply{
		Pieces: a.pieces(), Usage: &gemini.Usage{Prompt: a.in, Candidates: a.out - a.thoughts, Thoughts: a.thoughts, Total: a.in + a.out}, Status: a.status, RetryAfter: a.retryAfter,
		Message: serverMessage, Step: a.step, End: a.end, Raw: a.raw, ContentType: a.rawType,
	}
	if req, err := readGemini(body); err == nil && req.tool && a.rawType == "" && a.stop != refused && json.Valid([]byte(a.text)) {
		// The vendor sends function calls whole or not at all.
		r.Pieces = nil
		if len(a.text) > req.budget*4 {
			r.FinishReason = "MAX_TOKENS"
		} else {
			r.Calls = []gemini.Call{{Name: toolName(body), Args: a.text}}
		}
	}
	switch a.stop {
	case refused:
		r.Pieces, r.FinishReason, r.FinishMessage, r.Harm = nil, "SAFETY", secretWords, "HARM_CATEGORY_DANGEROUS_CONTENT"
	case unknown:
		r.FinishReason = v.unknown
	case clean, sequence: // the vendor uses one reason for both
	}
	if a.end == failing {
		r.Status = http.StatusServiceUnavailable
	}
	return r
}

type geminiRequest struct {
	System   json.RawMessage `json:"systemInstruction"`
	Contents json.RawMessage `json:"contents"`
	Config   struct {
		MaxTokens int             `json:"maxOutputTokens"`
		Schema    json.RawMessage `json:"responseJsonSchema"`
	} `json:"generationConfig"`
	Tools []struct {
		Functions []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

func readGemini(body []byte) (parsedRequest, error) {
	var r geminiRequest
	err := json.Unmarshal(body, &r)
	a := parsedRequest{budget: r.Config.MaxTokens, text: string(r.System) + string(r.Contents), schema: r.Config.Schema}
	if len(r.Tools) == 1 && len(r.Tools[0].Functions) == 1 {
		a.schema, a.tool = r.Tools[0].Functions[0].Schema, true
	}
	return a, err
}

func toolName(body []byte) string {
	var r geminiRequest
	_ = json.Unmarshal(body, &r) // the body was parsed before
	return r.Tools[0].Functions[0].Name
}
