package gemini

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// failed maps an error of the SDK or of the stream below it. Its message never repeats the vendor's
// text, which may quote the prompt or the key.
func (p *Provider) failed(ctx context.Context, err error, x *exchange) (provider.Result, error) {
	if ctx.Err() != nil {
		return provider.Result{}, ctx.Err()
	}
	if api, ok := errors.AsType[genai.APIError](err); ok {
		return provider.Result{}, p.refused(api, x)
	}
	if reported, ok := errors.AsType[*outbound.ServerError](err); ok { // in a stream
		code, err := strconv.Atoi(reported.Body.Code)
		if err != nil {
			code = http.StatusInternalServerError
		}
		return provider.Result{}, p.refused(genai.APIError{Code: code, Message: reported.Body.Message}, x)
	}
	if e, ok := provider.As(err); ok { // an event that is too long, or no token
		return provider.Result{}, e
	}
	if x.status >= http.StatusBadRequest { // an error with an incomplete body
		return provider.Result{}, p.refused(genai.APIError{Code: x.status}, x)
	}
	if _, ok := errors.AsType[*url.Error](err); !ok && x.broken == nil {
		err = outbound.ErrGarbage // the SDK's error quotes what it could not read
	}
	return provider.Result{}, outbound.NewTransportError(err)
}

// refused maps an error response or error event.
func (p *Provider) refused(api genai.APIError, x *exchange) *provider.Error {
	api = unlisted(api)
	details := detailsOf(api)
	e := p.byStatus(statusOf(api, x.status), x.keyName, api, details)
	e.RetryAfter, e.Quote = details.retryAfter(), provider.Quote(api.Message, x.key)
	e.Capacity = e.Retryable && (e.Code == provider.CodeQuota || outbound.IsOverloaded(api.Code) || x.status != http.StatusOK && outbound.IsOverloaded(x.status))
	if x.status != http.StatusOK { // else it came within the stream
		e.Status = x.status
		if e.RetryAfter == 0 && e.Retryable {
			reported := outbound.ServerError{Status: x.status, Header: x.header, Body: outbound.ErrorBody{Message: api.Message}}
			e.RetryAfter = reported.Wait()
		}
	}
	return e
}

// unlisted unwraps an error sent as a list of one, or in another form, which the SDK reads as text.
func unlisted(api genai.APIError) genai.APIError {
	var list []struct{ Error *genai.APIError }
	if json.Unmarshal([]byte(api.Message), &list) == nil && len(list) > 0 && list[0].Error != nil {
		return *list[0].Error
	}
	if json.Valid([]byte(api.Message)) {
		api.Message = outbound.ParseError([]byte(api.Message)).Message
	}
	return api
}

// statuses are the vendor's names of HTTP statuses, for errors without a name.
var statuses = map[int]string{
	http.StatusBadRequest:            "INVALID_ARGUMENT",
	http.StatusUnauthorized:          "UNAUTHENTICATED",
	http.StatusForbidden:             "PERMISSION_DENIED",
	http.StatusNotFound:              "NOT_FOUND",
	http.StatusGone:                  "NOT_FOUND",
	http.StatusRequestTimeout:        "DEADLINE_EXCEEDED",
	http.StatusConflict:              "ABORTED",
	http.StatusFailedDependency:      "ABORTED",
	http.StatusTooEarly:              "UNAVAILABLE",
	http.StatusTooManyRequests:       "RESOURCE_EXHAUSTED",
	499:                              "CANCELLED",
	http.StatusPaymentRequired:       paymentRequired,
	http.StatusRequestEntityTooLarge: tooLarge,
	http.StatusNotImplemented:        "UNIMPLEMENTED",
}

// HTTP statuses that are not in the vendor's list.
const (
	paymentRequired = "PAYMENT_REQUIRED"
	tooLarge        = "TOO_LARGE"
)

// statusOf returns the vendor's name of the error's status.
func statusOf(api genai.APIError, status int) string {
	if api.Status != "" && strings.ToUpper(api.Status) == api.Status && !strings.Contains(api.Status, " ") {
		return api.Status
	}
	if status == http.StatusOK {
		status = api.Code
	}
	if name, ok := statuses[status]; ok {
		return name
	}
	if status >= http.StatusInternalServerError || status == http.StatusOK {
		return "UNAVAILABLE"
	}
	return "INVALID_ARGUMENT"
}

func (p *Provider) byStatus(status, keyName string, api genai.APIError, d details) *provider.Error {
	body := outbound.ErrorBody{Message: api.Message}
	switch {
	case status == "PERMISSION_DENIED":
		if denied := outbound.NewDeniedError(http.StatusForbidden, body); denied != nil {
			return denied
		}
		if body.IsUnpaid() {
			return d.quota(paymentRequired, "")
		}
	case status != "RESOURCE_EXHAUSTED" && body.IsTooLong() && !body.IsOverloaded():
		status = "OUT_OF_RANGE"
	case status == "UNAVAILABLE" && api.Status == "" && body.Says("model") && body.IsNoModel():
		status = "NOT_FOUND"
	}
	switch status {
	case "INVALID_ARGUMENT", "OUT_OF_RANGE":
		return invalid(keyName, api, d)
	case "UNAUTHENTICATED", "PERMISSION_DENIED":
		return unauthorized(keyName)
	case "NOT_FOUND":
		return &provider.Error{
			Code:    provider.CodeModelNotSupported,
			Message: fmt.Sprintf("the vendor of provider %s does not know the model, or not the path; check the model's name and the provider's address", p.ID()),
		}
	case "RESOURCE_EXHAUSTED", paymentRequired:
		return d.quota(status, api.Message)
	case "FAILED_PRECONDITION":
		return &provider.Error{
			Code:    provider.CodeUnavailable,
			Message: "the vendor does not serve this account as it is; check its billing and where it may be used from",
		}
	case tooLarge:
		return &provider.Error{Code: provider.CodeContentTooLong, Message: "the prompt is longer than the vendor takes"}
	case "UNIMPLEMENTED":
		return &provider.Error{
			Code:    provider.CodeUnavailable,
			Message: "the vendor does not offer this call; check the provider's address",
		}
	default: // UNAVAILABLE, INTERNAL, DEADLINE_EXCEEDED, ABORTED, CANCELLED, UNKNOWN, DATA_LOSS
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the vendor failed or is overloaded" + codeOf(api.Code),
			Retryable: true,
		}
	}
}

func codeOf(code int) string {
	if code == 0 {
		return ""
	}
	return ", status " + strconv.Itoa(code)
}

func unauthorized(keyName string) *provider.Error {
	return &provider.Error{
		Code:    provider.CodeCredentialRequired,
		Message: "the vendor refused the key, or wants one; check " + keyName,
	}
}

// invalid distinguishes the requests that the vendor calls invalid. A wrong key has a reason and a
// wrong schema a path. A prompt that is too long is only recognisable by the message, which is
// searched and never repeated.
func invalid(keyName string, api genai.APIError, d details) *provider.Error {
	body := outbound.ErrorBody{Message: api.Message}
	switch {
	case strings.HasPrefix(d.reason, "API_KEY_"), body.Says("api key not valid", "api key expired"):
		return unauthorized(keyName)
	case body.IsTooLong():
		return &provider.Error{Code: provider.CodeContentTooLong, Message: "the prompt is longer than the model takes"}
	case strings.Contains(strings.ToLower(d.field), "schema"),
		!body.IsAboutMessages() && (body.IsAboutSchema() || body.Says("schema", "function calling", "response mime type")):
		return &provider.Error{Code: provider.CodeSchemaInvalid, Message: "the vendor does not accept the response schema"}
	default:
		return &provider.Error{
			Code:    provider.CodeInvalidRequest,
			Message: "the vendor does not accept the request" + codeOf(api.Code),
		}
	}
}
