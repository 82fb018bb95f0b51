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
	e := p.classify(req, reported, a.hasContent())
	e.Status = reported.Status
	e.Capacity = e.Capacity || e.Retryable && outbound.IsOverloaded(reported.Status)
	if e.Retryable {
		e.RetryAfter = reported.Wait()
	}
	e.Quote = provider.Quote(reported.Body.Message, req.Credential)
	return provider.Result{}, e
}

// filterOf returns the word of the filter that refused a prompt; empty if none did.
func filterOf(s *outbound.ServerError) string {
	switch s.Status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusNotFound, http.StatusTooManyRequests:
		return ""
	}
	if isTemporary(s.Status) && s.Status != http.StatusFailedDependency { // Cloudflare's status of its guardrails
		return ""
	}
	for _, word := range []string{s.Body.Code, s.Body.Kind} {
		if blocked(word) {
			return word
		}
	}
	if s.Body.IsFiltered() {
		return contentFilter
	}
	return ""
}

// classify maps an error by its status and by what it says. An error in a stream has no status, or
// one in its code. begun means that a part of the answer came before it.
func (p *Provider) classify(req provider.Request, s *outbound.ServerError, begun bool) *provider.Error {
	status, says, body := s.Status, s.Body.Says, s.Body
	const firstStatus, lastStatus = 400, 599
	if code, err := strconv.Atoi(body.Code); status == 0 && err == nil && code >= firstStatus && code <= lastStatus {
		status = code
	}
	limited := isLimited(status, body)
	if denied := outbound.NewDeniedError(status, body); denied != nil && !limited && !body.IsUnpaid() {
		return denied
	}
	switch {
	case status == http.StatusForbidden && says("model_not_found", "access to model", "access to the model"):
		return p.noModel()
	case (status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusPreconditionFailed) && body.IsUnpaid():
		return usedUp()
	case status == http.StatusUnauthorized || status == http.StatusForbidden && !limited || status == 0 && body.IsNoKey(),
		status == http.StatusBadRequest && body.IsBadKey():
		return &provider.Error{
			Code:    provider.CodeCredentialRequired,
			Message: "the model's server refused the key, or wants one; check " + p.server.KeyOf(req),
		}
	case status == http.StatusPaymentRequired, limited && body.IsUnpaid(), (status == 0 || status == http.StatusBadRequest) && body.IsUsedUp():
		return usedUp()
	case limited && body.IsOversized(), status == http.StatusRequestEntityTooLarge,
		!limited && body.IsTooLong() && (status <= http.StatusInternalServerError || !body.IsOverloaded()):
		return &provider.Error{
			Code:    provider.CodeContentTooLong,
			Message: "prompt and answer are longer than the model takes",
		}
	case limited:
		return &provider.Error{
			Code:      provider.CodeQuota,
			Message:   "the model's server refused for its rate limit",
			Retryable: true,
			Capacity:  true,
		}
	case body.IsBadGeneration():
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server rejected what its model wrote",
			Retryable: true,
		}
	case refusesSchema(req, status, body, begun):
		return &provider.Error{
			Code:    provider.CodeSchemaInvalid,
			Message: "the model's server does not accept the response schema, or has no enforced schemas for this model; an entry in --models can say how it takes schemas",
		}
	case isTemporary(status), (status < http.StatusMultipleChoices || status == flexCapacity) && body.IsOverloaded(),
		status == http.StatusNotFound && body.IsLoading():
		return p.temporary(status, body.IsOverloaded())
	case status == http.StatusNotFound, status == http.StatusGone, body.Param == "model",
		(status == http.StatusBadRequest || status == 0 && !begun) && says("model") && body.IsNoModel():
		return p.noModel()
	case status >= http.StatusBadRequest:
		return &provider.Error{
			Code:    provider.CodeInvalidRequest,
			Message: "the model's server does not accept the request, status " + strconv.Itoa(status) + memberHint(body.Param),
		}
	default: // in a stream
		return &provider.Error{
			Code:      provider.CodeUnavailable,
			Message:   "the model's server broke off its answer with an error",
			Retryable: true,
		}
	}
}

// isLimited reports whether a server refuses for its rate limit, by its status or its words.
func isLimited(status int, body outbound.ErrorBody) bool {
	switch status {
	case http.StatusTooManyRequests:
		return true
	case http.StatusForbidden:
		return body.IsNamedRateLimit()
	case 0:
		return body.IsRateLimit()
	case http.StatusBadRequest, http.StatusInternalServerError:
		return body.IsThrottled() && !body.IsBadGeneration()
	}
	return false
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
// they have not built, or a grammar that they cannot build, as an error of their own, or within a stream
// that has not begun its answer.
func refusesSchema(req provider.Request, status int, e outbound.ErrorBody, begun bool) bool {
	switch {
	case len(req.Schema) == 0 && req.Via != provider.ViaObject:
		return status >= http.StatusBadRequest && !isTemporary(status) && aboutSchema(e)
	case isTemporary(status) && (status != http.StatusInternalServerError || e.IsOverloaded()):
		return false
	case status == 0 && begun, 0 < status && status < http.StatusBadRequest, e.IsAboutMessages():
		return false
	}
	refused := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
	return e.IsAboutSchema() || aboutSchema(e) || refused && e.IsRefusedSchema(schemaName(req)) || req.Via == provider.ViaTool && e.Says("tool", "function call")
}

// aboutSchema reports whether a code or a member of OpenAI's errors is about the schema, as response
// format or as tool. No other tool is sent.
func aboutSchema(e outbound.ErrorBody) bool {
	return strings.HasPrefix(e.Param, "response_format") || strings.HasPrefix(e.Param, "text.format") ||
		strings.HasPrefix(e.Param, "tool") ||
		e.Code == "invalid_json_schema" || e.Code == "invalid_function_parameters"
}

const (
	// flexCapacity is Groq's status of a tier without capacity.
	flexCapacity = 498
	// clientClosed is the status of proxies for a connection that its client closed: here, another proxy.
	clientClosed = 499
)

// isTemporary reports the statuses of failures that may pass. What a server has not built stays so.
func isTemporary(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusFailedDependency, http.StatusTooEarly, clientClosed:
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
