package compat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// failed maps an error of the SDK. The server's own text is never repeated: it
// may quote the prompt or the key.
func (p *Provider) failed(ctx context.Context, err error, a *answer) (provider.Result, error) {
	if ctx.Err() != nil {
		return provider.Result{}, ctx.Err()
	}
	if api, ok := errors.AsType[*openai.Error](err); ok {
		if api.StatusCode == http.StatusBadRequest && api.Code == contentFilter {
			// A filter before the model refused the prompt: an answer, not a failure.
			a.finish = contentFilter
			return a.end()
		}
		return provider.Result{}, p.refused(api)
	}
	if event, ok := errors.AsType[*ssestream.StreamError](err); ok {
		return provider.Result{}, midway(event)
	}
	return provider.Result{}, outbound.Broken(err)
}

// refused maps an answer that is an error.
func (p *Provider) refused(api *openai.Error) *provider.Error {
	e := p.byStatus(api)
	e.Status = api.StatusCode
	if api.Response != nil {
		e.RetryAfter = outbound.RetryAfter(api.Response.Header)
	}
	return e
}

func (p *Provider) byStatus(api *openai.Error) *provider.Error {
	switch status := api.StatusCode; {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return &provider.Error{Code: provider.CodeCredentialRequired, Message: "the model's server refused the key, or wants one; check " + p.keyName()}
	case status == http.StatusNotFound:
		return &provider.Error{Code: provider.CodeModelNotSupported, Message: fmt.Sprintf("the server of provider %s does not know the model, or not the path; check the model's name and the provider's address", p.ID())}
	case status == http.StatusTooManyRequests || status == http.StatusPaymentRequired:
		return quota(status, api.Code)
	case status == http.StatusRequestEntityTooLarge || api.Code == "context_length_exceeded":
		return &provider.Error{Code: provider.CodeContentTooLong, Message: "the prompt is longer than the model takes"}
	case status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooEarly || status >= http.StatusInternalServerError:
		return &provider.Error{Code: provider.CodeUnavailable, Message: "the model's server failed with status " + strconv.Itoa(status), Retryable: true}
	case strings.HasPrefix(api.Param, "response_format") || api.Code == "invalid_json_schema":
		return &provider.Error{Code: provider.CodeSchemaInvalid, Message: "the model's server does not accept the response schema"}
	default:
		return &provider.Error{Code: provider.CodeInvalidRequest, Message: "the model's server does not accept the request, status " + strconv.Itoa(status)}
	}
}

func (p *Provider) keyName() string {
	if p.cfg.KeyName != "" {
		return p.cfg.KeyName
	}
	return "the API key of provider " + p.ID()
}

// quota tells a rate, which passes, from an account without money, which waiting
// does not help.
func quota(status int, code string) *provider.Error {
	e := &provider.Error{Code: provider.CodeQuota, Message: "the model's server refused for its rate limit", Retryable: true}
	if status == http.StatusPaymentRequired || code == "insufficient_quota" {
		e.Message, e.Retryable = "the account at the model's server is used up", false
	}
	return e
}

// midway maps an error that came as an event of the stream.
func midway(event *ssestream.StreamError) *provider.Error {
	var body struct {
		Error struct {
			Code any `json:"code"` // a string with the vendor, a number with others
		} `json:"error"`
	}
	_ = json.Unmarshal(event.Event.Data, &body) // unreadable is as good as unknown
	switch code := fmt.Sprint(body.Error.Code); code {
	case "rate_limit_exceeded", "insufficient_quota", "429":
		return quota(http.StatusTooManyRequests, code)
	case "context_length_exceeded":
		return &provider.Error{Code: provider.CodeContentTooLong, Message: "prompt and answer are longer than the model takes"}
	default:
		return outbound.Broken(nil)
	}
}
