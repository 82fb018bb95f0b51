package anthropic

import (
	"bufio"
	"context"
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
	if e, ok := provider.As(err); ok { // the platform could not sign the request
		return provider.Result{}, e
	}
	reported := reportedBy(err)
	if reported == nil {
		return provider.Result{}, outbound.NewTransportError(err)
	}
	kind, body := p.typeOf(reported), reported.Body
	if isFinal(kind, reported.Status) && reported.Body.IsFiltered() {
		// A filter outside the model declined: this is an answer.
		return a.finishBlocked()
	}
	e := p.byType(kind, body, req) // an error event within a stream
	if reported.Status != 0 {
		e = p.refused(kind, reported, req)
	}
	secret := req.Credential
	if p.platform.Secret != nil {
		secret = p.platform.Secret()
	}
	e.Quote = provider.Quote(reported.Body.Message, secret)
	return provider.Result{}, e
}

// isFinal reports whether an error is about the request, and not about its sender or the server's state.
func isFinal(kind shared.ErrorType, status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusNotFound, http.StatusTooManyRequests:
		return false
	}
	return status < http.StatusInternalServerError && kind != shared.ErrorTypeRateLimitError && kind != shared.ErrorTypeOverloadedError
}

// reportedBy returns the server's error in an error of the SDK; nil if the server reported none.
func reportedBy(err error) *outbound.ServerError {
	if reported, ok := errors.AsType[*outbound.ServerError](err); ok {
		return reported
	}
	doc := ""
	if api, ok := errors.AsType[*anthropic.Error](err); ok { // in a stream
		doc = api.RawJSON()
	} else if _, doc, ok = strings.Cut(err.Error(), "received error while streaming: "); !ok { // not in the vendor's form
		return nil
	}
	return &outbound.ServerError{Body: outbound.ParseError([]byte(doc))}
}

// typeOf returns the vendor's type of an error.
func (p *Provider) typeOf(reported *outbound.ServerError) shared.ErrorType {
	if p.platform.ErrorType != nil {
		if kind := p.platform.ErrorType(reported); kind != "" {
			return kind
		}
	}
	return shared.ErrorType(reported.Body.Kind)
}

// refused maps an error response.
func (p *Provider) refused(
	kind shared.ErrorType, reported *outbound.ServerError, req provider.Request,
) *provider.Error {
	e := p.byStatus(reported.Status, reported.Body, req)
	if p.platform.ErrorType != nil && kind != "" && kind != shared.ErrorType(reported.Body.Kind) {
		e = p.byType(kind, reported.Body, req)
	}
	e.Status = reported.Status
	e.Capacity = e.Capacity || e.Retryable && outbound.IsOverloaded(reported.Status)
	if e.Retryable {
		e.RetryAfter = reported.Wait()
	}
	return e
}

func (p *Provider) byStatus(status int, body outbound.ErrorBody, req provider.Request) *provider.Error {
	if denied := outbound.NewDeniedError(status, body); denied != nil && !body.IsNamedRateLimit() && !body.IsUnpaid() {
		return denied
	}
	switch {
	case status >= http.StatusInternalServerError && status != overloaded && body.IsTooLong() && !body.IsOverloaded():
		return promptTooLong()
	case (status == http.StatusUnauthorized || status == http.StatusForbidden) && body.IsUnpaid():
		return accountExhausted()
	case status == http.StatusForbidden && body.IsNamedRateLimit(), (status == http.StatusBadRequest || status == http.StatusInternalServerError) && body.IsThrottled() && !body.IsBadGeneration():
		return p.byType(shared.ErrorTypeRateLimitError, body, req)
	case status == http.StatusBadRequest && body.IsBadKey(), status == http.StatusUnauthorized:
		return p.byType(shared.ErrorTypeAuthenticationError, body, req)
	case status == http.StatusPaymentRequired:
		return p.byType(shared.ErrorTypeBillingError, body, req)
	case status == http.StatusForbidden:
		return p.byType(shared.ErrorTypePermissionError, body, req)
	case status == http.StatusNotFound, status == http.StatusGone:
		return p.byType(shared.ErrorTypeNotFoundError, body, req)
	case status == http.StatusRequestEntityTooLarge:
		return p.byType(requestTooLarge, body, req)
	case status == http.StatusTooManyRequests:
		return p.byType(shared.ErrorTypeRateLimitError, body, req)
	case status == overloaded, status >= http.StatusInternalServerError && shared.ErrorType(body.Kind) == shared.ErrorTypeOverloadedError:
		return p.byType(shared.ErrorTypeOverloadedError, body, req)
	case status == http.StatusNotImplemented:
		return &provider.Error{
			Code:    provider.CodeUnavailable,
			Message: "the model's server does not offer this call; check the provider's address",
		}
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusFailedDependency || status == http.StatusTooEarly || status == clientClosed || status >= http.StatusInternalServerError:
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server failed with status " + strconv.Itoa(status),
			Retryable: true,
		}
	default:
		return p.byType(shared.ErrorTypeInvalidRequestError, body, req)
	}
}

const (
	// overloaded is the vendor's own status.
	overloaded = 529
	// clientClosed is the status of proxies for a connection that its client closed: here, another proxy.
	clientClosed = 499
	// requestTooLarge is an error type that the SDK does not define.
	requestTooLarge shared.ErrorType = "request_too_large"
)

// byType maps the vendor's error types, which are the same in responses and streams.
func (p *Provider) byType(kind shared.ErrorType, body outbound.ErrorBody, req provider.Request) *provider.Error {
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
		switch {
		case body.IsUnpaid():
			return accountExhausted()
		case body.IsOversized():
			return promptTooLong()
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
		return badRequest(body, req)
	default: // api_error, timeout_error, unknown types, and none in the streams of other servers
		if kind != shared.ErrorTypeAPIError && kind != shared.ErrorTypeTimeoutError {
			switch {
			case body.IsUsedUp(), body.IsTooLong(), body.Says("model") && body.IsNoModel():
				return badRequest(body, req)
			case body.IsOverloaded():
				return p.byType(shared.ErrorTypeOverloadedError, body, req)
			}
		}
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server failed, or broke off its answer with an error",
			Retryable: true,
		}
	}
}

// badRequest distinguishes bad requests. The vendor has one type for all; only the message distinguishes
// them.
func badRequest(body outbound.ErrorBody, req provider.Request) *provider.Error {
	switch {
	case body.IsUsedUp():
		return accountExhausted()
	case body.Says("maximum allowed number of output tokens"):
		return invalid("maxTokens: %d; the model does not say so much in one answer", maxTokens(req))
	case body.IsTooLong():
		return promptTooLong()
	case body.IsBadGeneration():
		return &provider.Error{Code: provider.CodeUnavailable, Message: "the model's server rejected what its model wrote", Retryable: true}
	case body.IsNoModel():
		return &provider.Error{
			Code:    provider.CodeModelNotSupported,
			Message: "the model's server does not know the model, or does not serve it by this name",
		}
	case len(req.Schema) > 0 && !body.IsAboutMessages() && (body.IsAboutSchema() || body.IsRefusedSchema(req.SchemaName) ||
		body.Says("tools.0", "input_schema", "strict tool", "strict mode")),
		viaTool(req) && body.Says("support tool", "tool use", "tool calling"):
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
