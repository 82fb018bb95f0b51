package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// failed maps an error of the SDK. It never repeats the server's text, which may quote the prompt
// or the key.
func (p *Provider) failed(ctx context.Context, req provider.Request, err error, a *answer) (provider.Result, error) {
	if ctx.Err() != nil {
		return provider.Result{}, ctx.Err()
	}
	var code string
	var failure *provider.Error
	if api, ok := errors.AsType[*openai.Error](err); ok {
		if api.StatusCode == http.StatusBadRequest {
			code = api.Code
		}
		failure = p.refused(req, api)
	} else if event, ok := errors.AsType[*ssestream.StreamError](err); ok {
		code, failure = streamError(event)
	} else {
		failure = outbound.NewTransportError(err)
	}
	if blocked(code) {
		// A filter before the model refused the prompt: this is an answer.
		a.finishReason = code
		return a.finish()
	}
	return provider.Result{}, failure
}

// refused maps an error response.
func (p *Provider) refused(req provider.Request, api *openai.Error) *provider.Error {
	e := p.byStatus(req, api)
	e.Status = api.StatusCode
	e.Capacity = e.Capacity || e.Retryable && (outbound.IsOverloaded(api.StatusCode) || slices.Contains(overloads, api.Code))
	if api.Response != nil {
		e.RetryAfter = retryAfter(api.Response.Header)
	}
	return e
}

func (p *Provider) byStatus(req provider.Request, api *openai.Error) *provider.Error {
	switch status := api.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &provider.Error{
			Code:    provider.CodeCredentialRequired,
			Message: "the model's server refused the key, or wants one; check " + p.server.KeyOf(req),
		}
	case status == http.StatusNotFound || status == http.StatusBadRequest && api.Param == "model":
		return &provider.Error{
			Code:    provider.CodeModelNotSupported,
			Message: fmt.Sprintf("the server of provider %s does not know the model, or not the path; check the model's name and the provider's address", p.ID()),
		}
	case status == http.StatusTooManyRequests || status == http.StatusPaymentRequired:
		return quota(status, api.Code)
	case status == http.StatusRequestEntityTooLarge || api.Code == "context_length_exceeded" || api.Code == "string_above_max_length":
		return &provider.Error{Code: provider.CodeContentTooLong, Message: "the prompt is longer than the model takes"}
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooEarly || status >= http.StatusInternalServerError:
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server failed with status " + strconv.Itoa(status),
			Retryable: true,
		}
	case aboutSchema(api):
		return &provider.Error{
			Code:    provider.CodeSchemaInvalid,
			Message: "the model's server does not accept the response schema",
		}
	default:
		return &provider.Error{
			Code:    provider.CodeInvalidRequest,
			Message: "the model's server does not accept the request, status " + strconv.Itoa(status) + memberHint(api.Param),
		}
	}
}

// aboutSchema reports whether an error is about the schema, as response format or as tool. No other
// tool is sent.
func aboutSchema(api *openai.Error) bool {
	return strings.HasPrefix(api.Param, "response_format") || strings.HasPrefix(api.Param, "tool") ||
		api.Code == "invalid_json_schema" || api.Code == "invalid_function_parameters"
}

// memberHint names the request member of an error if the author can set it. Any other name is the
// server's text.
func memberHint(member string) string {
	named := []string{
		"temperature", "top_p", "seed", "stop", "max_tokens", "max_completion_tokens", "reasoning_effort",
		"modalities", "audio", "messages",
	}
	if !slices.Contains(named, member) {
		return ""
	}
	return ": the model does not take " + member + " as it is"
}

// quota distinguishes a temporary rate limit from an exhausted account.
func quota(status int, code string) *provider.Error {
	e := &provider.Error{
		Code:      provider.CodeQuota,
		Message:   "the model's server refused for its rate limit",
		Retryable: true,
		Capacity:  true,
	}
	if status == http.StatusPaymentRequired || code == "insufficient_quota" || code == "billing_hard_limit_reached" {
		e.Message, e.Retryable, e.Capacity = "the account at the model's server is used up", false, false
	}
	return e
}

// overloads are the error codes of overloaded servers.
var overloads = []string{
	"server_overloaded", "engine_overloaded", "model_overloaded", "overloaded_error", "overloaded",
	"slow_down", "503", "529",
}

// streamError maps an error event of the stream and returns its code.
func streamError(event *ssestream.StreamError) (string, *provider.Error) {
	var body struct {
		Error struct {
			Code any `json:"code"` // a string from the vendor, a number from other servers
		} `json:"error"`
	}
	_ = json.Unmarshal(event.Event.Data, &body) // unreadable counts as unknown
	code := fmt.Sprint(body.Error.Code)
	if slices.Contains(overloads, code) {
		return code, &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server is overloaded",
			Retryable: true,
			Capacity:  true,
		}
	}
	switch code {
	case "rate_limit_exceeded", "insufficient_quota", "billing_hard_limit_reached", "429":
		return code, quota(http.StatusTooManyRequests, code)
	case "context_length_exceeded":
		return code, &provider.Error{
			Code:    provider.CodeContentTooLong,
			Message: "prompt and answer are longer than the model takes",
		}
	default:
		return code, outbound.NewTransportError(nil)
	}
}
