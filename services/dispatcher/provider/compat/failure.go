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
	if word := filterOf(reported); word != "" { // a filter before the model refused the prompt: this is an answer
		a.finishReason = word
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
		"token limit exceeded", "contextwindowexceeded", "context shift is disabled", "`inputs` tokens + `max_new_tokens`",
		"`inputs` must have less than", "exceeds the model's maximum", "maximum number of tokens allowed",
		"range of input length should be",
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
		"out of capacity", "loading model", "model is loading", "currently loading", "model too busy", "capacity_exceeded",
		"capacity exceeded", "over capacity", "high demand", "too busy",
		"try again later", "temporarily unavailable", "service_unavailable", "service unavailable",
	}
	saysRateLimit = []string{"rate_limit", "rate limit", "too many requests", "requests per", "tokens per min"} //nolint:gochecknoglobals // a constant
	saysUsedUp    = []string{                                                                                   //nolint:gochecknoglobals // a constant
		"insufficient_quota", "billing_hard_limit", "billing", "insufficient balance",
		"insufficient_balance", "insufficient credit", "credit balance", "out of credit",
		"payment required", "exceeded your current quota", "budget has been exceeded", "budget_exceeded",
		"balance is insufficient", "exceeded_current_quota", "spending limit", "call volume quota", "not enough credits",
		"allocationquota",
	}
	saysNoModel = []string{ //nolint:gochecknoglobals // a constant
		"model_not_found", "model not found", "unknown model", "no such model", "invalid model",
		"does not exist", "try pulling it", "is not loaded", "no models loaded",
	}
	saysNoKey = []string{"invalid_api_key", "invalid api key", "incorrect api key", "missing api key", "unauthorized", "authentication"} //nolint:gochecknoglobals // a constant
)

// saysFiltered are phrases of filters whose errors have no code of their own: of Azure behind gateways,
// OpenRouter, xAI, DeepSeek, Alibaba and Zhipu.
var saysFiltered = []string{ //nolint:gochecknoglobals // a constant
	"content management policy", "contentpolicyviolation", "responsibleaipolicyviolation", "your input was flagged",
	"violates usage guidelines", "content exists risk", "inappropriate content", "unsafe or sensitive content",
}

// filterOf returns the word of the filter that refused a prompt; empty if none did.
func filterOf(s *outbound.ServerError) string {
	switch s.Status {
	case 0, http.StatusBadRequest, http.StatusForbidden, http.StatusUnprocessableEntity:
	default:
		return ""
	}
	for _, word := range []string{s.Body.Code, s.Body.Kind} {
		if blocked(word) {
			return word
		}
	}
	if s.Body.Says(saysFiltered...) {
		return contentFilter
	}
	return ""
}

// classify maps an error by its status and by what it says. An error in a stream has no status, or
// one in its code.
func (p *Provider) classify(req provider.Request, s *outbound.ServerError) *provider.Error {
	status, says := s.Status, s.Body.Says
	const firstStatus, lastStatus = 400, 599
	if code, err := strconv.Atoi(s.Body.Code); status == 0 && err == nil && code >= firstStatus && code <= lastStatus {
		status = code
	}
	switch {
	case status == http.StatusForbidden && says("model_not_found", "access to model", "access to the model"):
		return p.noModel()
	case status == http.StatusForbidden && says(saysUsedUp...), status == http.StatusPreconditionFailed && says(saysUsedUp...):
		return usedUp()
	case status == http.StatusUnauthorized || status == http.StatusForbidden || status == 0 && says(saysNoKey...):
		return &provider.Error{
			Code:    provider.CodeCredentialRequired,
			Message: "the model's server refused the key, or wants one; check " + p.server.KeyOf(req),
		}
	case status == http.StatusPaymentRequired, (status == http.StatusTooManyRequests || status == 0 || status == http.StatusBadRequest) && says(saysUsedUp...):
		return usedUp()
	case status == http.StatusTooManyRequests, status == 0 && says(saysRateLimit...):
		return &provider.Error{
			Code:      provider.CodeQuota,
			Message:   "the model's server refused for its rate limit",
			Retryable: true,
			Capacity:  true,
		}
	case status == http.StatusRequestEntityTooLarge || status <= http.StatusInternalServerError && says(saysTooLong...):
		return &provider.Error{
			Code:    provider.CodeContentTooLong,
			Message: "prompt and answer are longer than the model takes",
		}
	case (len(req.Schema) > 0 || req.Via == provider.ViaObject) && says(saysBadGeneration...):
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
	case isTemporary(status), (status < http.StatusMultipleChoices || status == flexCapacity) && says(saysOverloaded...):
		return p.temporary(status, says(saysOverloaded...))
	case status == http.StatusNotFound, s.Body.Param == "model", status == http.StatusBadRequest && says("model") && says(saysNoModel...):
		return p.noModel()
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

func (p *Provider) noModel() *provider.Error {
	return &provider.Error{
		Code: provider.CodeModelNotSupported,
		Message: fmt.Sprintf("the server of provider %s does not know the model, or not the path; "+
			"check the model's name and the provider's address", p.ID()),
	}
}

func usedUp() *provider.Error {
	return &provider.Error{Code: provider.CodeQuota, Message: "the account at the model's server is used up"}
}

// refusesSchema reports whether a server refuses the schema, or its form. Some servers report what
// they have not built, or a grammar that they cannot build, as an error of their own.
func refusesSchema(req provider.Request, status int, e outbound.ErrorBody) bool {
	switch {
	case len(req.Schema) == 0 && req.Via != provider.ViaObject:
		return status >= http.StatusBadRequest && !isTemporary(status) && aboutSchema(e)
	case isTemporary(status) && (status != http.StatusInternalServerError || e.Says(saysOverloaded...)):
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

// flexCapacity is Groq's status of a tier without capacity.
const flexCapacity = 498

// isTemporary reports the statuses of failures that may pass. What a server has not built stays so.
func isTemporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	default:
		return status >= http.StatusInternalServerError
	}
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
