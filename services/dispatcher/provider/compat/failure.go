package compat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// failed maps an error of a call.
func (p *Provider) failed(ctx context.Context, req provider.Request, err error, a *answer) (provider.Result, error) {
	if ctx.Err() != nil {
		return provider.Result{}, ctx.Err()
	}
	reported, ok := errors.AsType[*outbound.ServerError](err)
	if !ok {
		return provider.Result{}, outbound.NewTransportError(err)
	}
	if blocked(reported.Body.Code) && (reported.Status == 0 || reported.Status == http.StatusBadRequest) {
		// A filter before the model refused the prompt: this is an answer.
		a.finishReason = reported.Body.Code
		return a.finish()
	}
	e := p.classify(req, reported)
	e.Status = reported.Status
	e.Capacity = e.Capacity || e.Retryable && outbound.IsOverloaded(reported.Status)
	e.RetryAfter = retryAfter(reported.Header)
	e.Quote = provider.Quote(reported.Body.Message, req.Credential)
	return provider.Result{}, e
}

// Phrases in the errors of servers, in lower case: of OpenAI, vLLM, llama.cpp, Ollama, LM Studio,
// Mistral, Groq, DeepSeek and gateways. Servers have few codes in common, so their text decides where
// the status does not.
var (
	saysTooLong = []string{ //nolint:gochecknoglobals // a constant
		"context_length", "context length", "context size", "context window", "context_window",
		"exceed_context_size", "maximum context", "max_model_len",
		"string_above_max_length", "prompt is too long", "input is too long", "input too long",
		"prompt too long", "too many tokens", "too many input tokens",
		"reduce the length", "exceeds the available context", "larger than the maximum",
		"token limit exceeded",
	}
	saysSchema = []string{ //nolint:gochecknoglobals // a constant
		"response_format", "response format", "json_schema", "json schema", "invalid_json_schema",
		"invalid_function_parameters", "structured output", "guided_json",
		"guided decoding", "grammar", "function parameters", "tools[0]", "tool_choice", "json mode",
		"json_object", "requested parameters", "text.format",
	}
	// saysTool is only about the schema if it was sent as a tool.
	saysTool          = []string{"tool", "function call"} //nolint:gochecknoglobals // a constant
	saysBadGeneration = []string{                         //nolint:gochecknoglobals // a constant
		"json_validate_failed", "failed_generation", "failed to generate json", "tool_use_failed",
		"failed to call a function", "failed to validate json",
	}
	saysOverloaded = []string{ //nolint:gochecknoglobals // a constant
		"overloaded", "server_busy", "server is busy", "slow_down", "no capacity", "at capacity",
		"out of capacity", "loading model", "model is loading",
		"try again later", "temporarily unavailable", "service_unavailable", "service unavailable",
	}
	saysRateLimit = []string{"rate_limit", "rate limit", "too many requests", "requests per", "tokens per min"} //nolint:gochecknoglobals // a constant
	saysUsedUp    = []string{                                                                                   //nolint:gochecknoglobals // a constant
		"insufficient_quota", "billing_hard_limit", "billing", "insufficient balance",
		"insufficient_balance", "insufficient credit", "credit balance", "out of credit",
		"payment required", "exceeded your current quota",
	}
	saysNoModel = []string{ //nolint:gochecknoglobals // a constant
		"model_not_found", "model not found", "unknown model", "no such model", "invalid model",
		"does not exist", "try pulling it", "is not loaded", "no models loaded",
	}
	saysNoKey = []string{"invalid_api_key", "invalid api key", "incorrect api key", "missing api key", "unauthorized", "authentication"} //nolint:gochecknoglobals // a constant
)

// classify maps an error by its status and by what it says. An error in a stream has no status, or
// one in its code.
func (p *Provider) classify(req provider.Request, s *outbound.ServerError) *provider.Error {
	status, says := s.Status, s.Body.Says
	if status == 0 {
		status, _ = strconv.Atoi(s.Body.Code)
	}
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == 0 && says(saysNoKey...):
		return &provider.Error{
			Code:    provider.CodeCredentialRequired,
			Message: "the model's server refused the key, or wants one; check " + p.server.KeyOf(req),
		}
	case status == http.StatusPaymentRequired, (status == http.StatusTooManyRequests || status == 0 || status == http.StatusBadRequest) && says(saysUsedUp...):
		return &provider.Error{Code: provider.CodeQuota, Message: "the account at the model's server is used up"}
	case status == http.StatusTooManyRequests, status == 0 && says(saysRateLimit...):
		return &provider.Error{
			Code:      provider.CodeQuota,
			Message:   "the model's server refused for its rate limit",
			Retryable: true,
			Capacity:  true,
		}
	case status == http.StatusRequestEntityTooLarge || status < http.StatusInternalServerError && says(saysTooLong...):
		return &provider.Error{
			Code:    provider.CodeContentTooLong,
			Message: "prompt and answer are longer than the model takes",
		}
	case len(req.Schema) > 0 && says(saysBadGeneration...):
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server rejected what its model wrote",
			Retryable: true,
		}
	case refusesSchema(req, status, s.Body):
		return &provider.Error{
			Code:    provider.CodeSchemaInvalid,
			Message: "the model's server does not accept the response schema, or has no enforced schemas for this model; an entry in --models can say how it takes schemas",
		}
	case isTemporary(status), status < http.StatusMultipleChoices && says(saysOverloaded...):
		return p.temporary(status, says(saysOverloaded...))
	case status == http.StatusNotFound, s.Body.Param == "model", status == http.StatusBadRequest && says("model") && says(saysNoModel...):
		return &provider.Error{
			Code:    provider.CodeModelNotSupported,
			Message: fmt.Sprintf("the server of provider %s does not know the model, or not the path; check the model's name and the provider's address", p.ID()),
		}
	case status >= http.StatusBadRequest:
		return &provider.Error{
			Code:    provider.CodeInvalidRequest,
			Message: "the model's server does not accept the request, status " + strconv.Itoa(status) + memberHint(s.Body.Param),
		}
	default: // in a stream
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server broke off its answer with an error",
			Retryable: true,
		}
	}
}

// refusesSchema reports whether a server refuses the schema, or its form. Some servers report what
// they have not built, or a grammar that they cannot build, as an error of their own.
func refusesSchema(req provider.Request, status int, e outbound.ErrorBody) bool {
	switch {
	case len(req.Schema) == 0 && req.Via != provider.ViaObject:
		return status >= http.StatusBadRequest && !isTemporary(status) && aboutSchema(e)
	case isTemporary(status) && (status != http.StatusInternalServerError && status != http.StatusNotImplemented || e.Says(saysOverloaded...)):
		return false
	case status < http.StatusBadRequest:
		return false
	}
	return e.Says(saysSchema...) || aboutSchema(e) || req.Via == provider.ViaTool && e.Says(saysTool...)
}

// aboutSchema reports whether a code or a member of OpenAI's errors is about the schema, as response
// format or as tool. No other tool is sent.
func aboutSchema(e outbound.ErrorBody) bool {
	return strings.HasPrefix(e.Param, "response_format") || strings.HasPrefix(e.Param, "text.format") ||
		strings.HasPrefix(e.Param, "tool") ||
		e.Code == "invalid_json_schema" || e.Code == "invalid_function_parameters"
}

// isTemporary reports the statuses of failures that may pass.
func isTemporary(status int) bool {
	return slices.Contains([]int{
		http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly,
	}, status) || status >= http.StatusInternalServerError
}

// temporary is a failure that may pass.
func (*Provider) temporary(status int, overloaded bool) *provider.Error {
	e := &provider.Error{
		Code:      provider.CodeUnavailable,
		Message:   "the model's server failed with status " + strconv.Itoa(status),
		Retryable: true,
		Capacity:  overloaded || outbound.IsOverloaded(status),
	}
	if overloaded {
		e.Message = "the model's server is overloaded"
	}
	return e
}

// memberHint names the request member of an error if the author can set it.
func memberHint(member string) string {
	named := []string{
		"temperature", "top_p", "seed", "stop", "max_tokens", "max_completion_tokens", "reasoning_effort",
		"modalities", "audio", "messages", "max_output_tokens", "input", "reasoning.effort", "reasoning.summary",
	}
	if !slices.Contains(named, member) {
		return ""
	}
	return ": the model does not take " + member + " as it is"
}
