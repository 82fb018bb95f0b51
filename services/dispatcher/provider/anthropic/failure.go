package anthropic

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/shared"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// failed maps an error of the SDK. Its message never repeats the vendor's text, which may quote the
// prompt or the key.
func (p *Provider) failed(ctx context.Context, err error, req provider.Request, a *answer) (provider.Result, error) {
	if ctx.Err() != nil {
		return provider.Result{}, ctx.Err()
	}
	if errors.Is(err, outbound.ErrTooLong) || errors.Is(err, bufio.ErrTooLong) {
		return provider.Result{}, &provider.Error{
			Code:    provider.CodeContentTooLong,
			Message: "a piece of the answer is longer than an answer may be",
		}
	}
	api, ok := errors.AsType[*anthropic.Error](err)
	if !ok {
		return provider.Result{}, outbound.NewTransportError(err)
	}
	kind, text := api.Type(), strings.ToLower(messageOf(api))
	if kind == shared.ErrorTypeInvalidRequestError && containsAny(text, filtered) {
		// A filter outside the model declined: this is an answer.
		return a.finishBlocked()
	}
	e := p.byType(kind, text, req) // an error event within a stream
	if api.StatusCode >= http.StatusBadRequest {
		e = p.refused(api, text, req)
	}
	e.Quote = provider.Quote(messageOf(api), req.Credential)
	return provider.Result{}, e
}

// refused maps an error response.
func (p *Provider) refused(api *anthropic.Error, text string, req provider.Request) *provider.Error {
	e := p.byStatus(api.StatusCode, text, req)
	e.Status = api.StatusCode
	e.Capacity = e.Capacity || e.Retryable && outbound.IsOverloaded(api.StatusCode)
	if api.Response != nil {
		e.RetryAfter = retryAfter(api.Response.Header)
	}
	return e
}

func (p *Provider) byStatus(status int, text string, req provider.Request) *provider.Error {
	switch {
	case status == http.StatusUnauthorized:
		return p.byType(shared.ErrorTypeAuthenticationError, text, req)
	case status == http.StatusPaymentRequired:
		return p.byType(shared.ErrorTypeBillingError, text, req)
	case status == http.StatusForbidden:
		return p.byType(shared.ErrorTypePermissionError, text, req)
	case status == http.StatusNotFound:
		return p.byType(shared.ErrorTypeNotFoundError, text, req)
	case status == http.StatusRequestEntityTooLarge:
		return p.byType(requestTooLarge, text, req)
	case status == http.StatusTooManyRequests:
		return p.byType(shared.ErrorTypeRateLimitError, text, req)
	case status == overloaded:
		return p.byType(shared.ErrorTypeOverloadedError, text, req)
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooEarly || status >= http.StatusInternalServerError:
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server failed with status " + strconv.Itoa(status),
			Retryable: true,
		}
	default:
		return p.byType(shared.ErrorTypeInvalidRequestError, text, req)
	}
}

const (
	// overloaded is the vendor's own status.
	overloaded = 529
	// requestTooLarge is an error type that the SDK does not define.
	requestTooLarge shared.ErrorType = "request_too_large"
)

// byType maps the vendor's error types, which are the same in responses and streams.
func (p *Provider) byType(kind shared.ErrorType, text string, req provider.Request) *provider.Error {
	switch kind {
	case shared.ErrorTypeAuthenticationError:
		return &provider.Error{
			Code:    provider.CodeCredentialRequired,
			Message: "the model's server refused the key, or wants one; check " + p.server.KeyOf(req),
		}
	case shared.ErrorTypePermissionError:
		return &provider.Error{
			Code:    provider.CodeCredentialRequired,
			Message: "the model's server does not let this key do that; check the permissions of " + p.server.KeyOf(req),
		}
	case shared.ErrorTypeNotFoundError:
		return &provider.Error{
			Code:    provider.CodeModelNotSupported,
			Message: fmt.Sprintf("the server of provider %s does not know the model, or not the path; check the model's name and the provider's address", p.ID()),
		}
	case requestTooLarge:
		return promptTooLong()
	case shared.ErrorTypeRateLimitError:
		if containsAny(text, usedUp) {
			return accountExhausted()
		}
		return &provider.Error{
			Code:      provider.CodeQuota,
			Message:   "the model's server refused for its rate limit",
			Retryable: true,
			Capacity:  true,
		}
	case shared.ErrorTypeBillingError:
		return accountExhausted()
	case shared.ErrorTypeOverloadedError:
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server is overloaded",
			Retryable: true,
			Capacity:  true,
		}
	case shared.ErrorTypeInvalidRequestError:
		return badRequest(text, req)
	default: // api_error, timeout_error, and unknown types
		return outbound.NewTransportError(nil)
	}
}

// The vendor has one type for all bad requests; only the message distinguishes them.
var (
	filtered   = []string{"blocked by content filtering"}
	usedUp     = []string{"credit balance is too low", "usage limit", "spend limit", "spending limit"}
	longPrompt = []string{
		"prompt is too long", "exceed context limit", "exceeds the maximum allowed", "image exceeds",
		"too many total text bytes",
	}
	longAnswer = []string{"maximum allowed number of output tokens"}
	badSchema  = []string{
		"output_config", "output_format", "tools.0", "schema", "strict tool", "strict mode",
		"structured output", "grammar",
	}
)

func containsAny(text string, phrases []string) bool {
	for _, p := range phrases {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

func badRequest(text string, req provider.Request) *provider.Error {
	switch {
	case containsAny(text, usedUp):
		return accountExhausted()
	case containsAny(text, longAnswer):
		return invalid("maxTokens: %d; the model does not say so much in one answer", maxTokens(req))
	case containsAny(text, longPrompt):
		return promptTooLong()
	case len(req.Schema) > 0 && containsAny(text, badSchema):
		return &provider.Error{
			Code:    provider.CodeSchemaInvalid,
			Message: "the model's server does not accept the response schema, or has no strict answers of this model",
		}
	default:
		return invalid("the model's server does not accept the request; check that the model takes its content, temperature, topP and stop")
	}
}

func promptTooLong() *provider.Error {
	return &provider.Error{
		Code:    provider.CodeContentTooLong,
		Message: "the prompt, with room for the answer, is longer than the model takes",
	}
}

// accountExhausted is an account without credit, which retrying does not help.
func accountExhausted() *provider.Error {
	return &provider.Error{Code: provider.CodeQuota, Message: "the account at the model's server is used up"}
}

// messageOf returns the vendor's message.
func messageOf(api *anthropic.Error) string {
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(api.RawJSON()), &body) // unreadable counts as unknown
	return body.Error.Message
}
