package openaicompat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The rules below are OpenAI's own, in addition to those of every compatible server. Options.OpenAI
// enables them.

var (
	reasoner = regexp.MustCompile(`^(ft:)?(o\d|gpt-([5-9]|[12]\d))`)
	// asked matches the models that reason only on request.
	asked = regexp.MustCompile(`^(ft:)?gpt-5\.[1-4]`)
)

// reasons reports whether a model supports reasoning.
func reasons(model string) bool {
	return reasoner.MatchString(model) && !strings.Contains(model, "-chat")
}

// hears reports whether a model supports audio.
func hears(model string) bool { return strings.Contains(model, "audio") }

// modelRules rejects members that the model does not accept.
func modelRules(model string, members map[string]json.RawMessage) *Reply {
	if !reasons(model) {
		if members["reasoning_effort"] != nil {
			return unsupported("reasoning_effort", "")
		}
		return nil
	}
	if members["max_tokens"] != nil {
		return unsupported("max_tokens", " Use 'max_completion_tokens' instead.")
	}
	var effort string
	_ = json.Unmarshal(members["reasoning_effort"], &effort) // checked before: a string, or absent
	if effort != "" && !slices.Contains([]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}, effort) {
		r := bad("reasoning_effort", "Invalid value: '%s'.", effort)
		r.Code = "invalid_value"
		return r
	}
	if asked.MatchString(model) && (effort == "" || effort == "none") {
		return nil
	}
	return thinkingRules(members)
}

// thinkingRules rejects members that are not allowed while reasoning.
func thinkingRules(members map[string]json.RawMessage) *Reply {
	for _, name := range []string{"top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias", "stop"} {
		if members[name] != nil {
			return unsupported(name, "")
		}
	}
	if t := members["temperature"]; t != nil && string(t) != "1" {
		r := bad("temperature", "Unsupported value: 'temperature' does not support %s with this model. Only the default (1) value is supported.", t)
		r.Code = "unsupported_value"
		return r
	}
	return nil
}

func unsupported(name, hint string) *Reply {
	r := bad(name, "Unsupported parameter: '%s' is not supported with this model.%s", name, hint)
	r.Code = "unsupported_parameter"
	return r
}

// soundRules checks audio members against the model.
func soundRules(model string, members map[string]json.RawMessage) *Reply {
	var modalities []string
	_ = json.Unmarshal(members["modalities"], &modalities) // checked before, or absent
	speaks := slices.Contains(modalities, "audio")
	heard := strings.Contains(string(members["messages"]), `"input_audio"`)
	var format struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(members["response_format"], &format) // checked before, or absent
	switch {
	case !hears(model) && speaks:
		r := bad("modalities", "This model does not support audio output.")
		r.Code = "unsupported_value"
		return r
	case !hears(model) && heard:
		r := bad("messages", "This model does not support input_audio content.")
		r.Code = "unsupported_value"
		return r
	case !hears(model):
		return nil
	case format.Type == "json_schema":
		return bad("response_format", "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.")
	case !speaks && !heard:
		return bad("model", "This model requires that either input content or output modality contain audio.")
	case speaks:
		return voice(members)
	default:
		return nil
	}
}

func voice(members map[string]json.RawMessage) *Reply {
	var audio struct{ Voice, Format string }
	switch err := json.Unmarshal(members["audio"], &audio); {
	case err != nil:
		return bad("audio", "Missing required parameter: 'audio'.")
	case audio.Voice == "":
		return bad("audio.voice", "Missing required parameter: 'audio.voice'.")
	case string(members["stream"]) == "true" && audio.Format != "pcm16":
		r := bad("audio.format", "Unsupported value: 'audio.format' does not support '%s' when stream=true. Supported values are: 'pcm16'.", audio.Format)
		r.Code = "unsupported_value"
		return r
	default:
		return nil
	}
}

// requestsPerMinute is the limit in the headers if Options set none.
const requestsPerMinute = 500

// limited sets OpenAI's rate limit headers and rejects requests over the limit.
func (s *Server) limited(h http.Header) *Reply {
	if !s.options.OpenAI {
		return nil
	}
	count, limit := int(s.counted.Add(1)), s.options.RateLimit
	if limit == 0 {
		limit = max(requestsPerMinute, count)
	}
	left := max(limit-count, 0)
	for name, value := range map[string]string{
		"X-Request-Id": fmt.Sprintf("req_%032x", count), "Openai-Version": "2020-10-01", "Openai-Organization": "org-double", "Openai-Processing-Ms": "7",
		"X-Ratelimit-Limit-Requests": strconv.Itoa(limit), "X-Ratelimit-Remaining-Requests": strconv.Itoa(left), "X-Ratelimit-Reset-Requests": "1m0s",
		"X-Ratelimit-Limit-Tokens": "30000", "X-Ratelimit-Remaining-Tokens": "29000", "X-Ratelimit-Reset-Tokens": "2ms",
	} {
		h.Set(name, value)
	}
	if count <= limit {
		return nil
	}
	return &Reply{Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", Type: "requests", Message: "Rate limit reached for requests."}
}
