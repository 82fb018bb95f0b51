// Package compat speaks to any server with OpenAI's chat completions API, over
// the official SDK. The SDK's own retries are off: retrying is the run loop's.
package compat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// Provider is one server. It is safe for concurrent use; Close it when done.
type Provider struct {
	id     string
	client openai.Client
	http   *http.Client
}

// New checks the configuration; it connects to nothing.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	t := &http.Transport{
		ResponseHeaderTimeout: cfg.Timeout, MaxIdleConns: 128, MaxIdleConnsPerHost: 128, IdleConnTimeout: 90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		// No proxy from the environment: the operator names the server itself.
	}
	// A redirect would carry the key to an address nobody configured.
	hc := &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(cfg.BaseURL, "/") + "/"), option.WithHTTPClient(hc), option.WithMaxRetries(0),
		option.WithAPIKey(string(cfg.APIKey)),
	}
	if cfg.APIKey == "" {
		opts = append(opts, option.WithHeaderDel("Authorization"))
	}
	return &Provider{id: cfg.ID, client: openai.NewClient(opts...), http: hc}, nil
}

// ID names the provider.
func (p *Provider) ID() string { return p.id }

// Close drops idle connections.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Call asks the server once, streaming.
func (p *Provider) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	params, err := paramsOf(req)
	if err != nil {
		return provider.Result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the connection when emit fails
	var opts []option.RequestOption
	if req.InvocationID != "" {
		opts = append(opts, option.WithHeader("Idempotency-Key", req.InvocationID))
	}
	s := p.client.Chat.Completions.NewStreaming(ctx, params, opts...)
	defer func() { _ = s.Close() }()
	a := answer{emit: emit, model: req.Model}
	for s.Next() {
		if err := a.take(s.Current()); err != nil {
			return provider.Result{}, err
		}
	}
	if err := s.Err(); err != nil {
		return provider.Result{}, p.failed(ctx, err)
	}
	if a.finish == "" { // the stream ended and the server did not say why
		return provider.Result{}, cutOff(nil)
	}
	return a.end()
}

func paramsOf(req provider.Request) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{
		Model:         req.Model,
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	if req.System != "" {
		p.Messages = append(p.Messages, openai.SystemMessage(req.System))
	}
	for _, m := range req.Messages {
		raw, err := json.Marshal(struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}{m.Role, m.Content})
		if err != nil {
			return p, &provider.Error{Code: "validation_error", Message: "a message's content is not JSON", Cause: err}
		}
		p.Messages = append(p.Messages, param.Override[openai.ChatCompletionMessageParamUnion](json.RawMessage(raw)))
	}
	if req.MaxTokens > 0 {
		p.MaxTokens = openai.Int(int64(req.MaxTokens))
	}
	if req.Temperature != nil {
		p.Temperature = openai.Float(*req.Temperature)
	}
	if req.TopP != nil {
		p.TopP = openai.Float(*req.TopP)
	}
	if req.Seed != nil {
		p.Seed = openai.Int(*req.Seed)
	}
	if len(req.Stop) > 0 {
		p.Stop = openai.ChatCompletionNewParamsStopUnion{OfStringArray: req.Stop}
	}
	if len(req.Schema) > 0 {
		p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: req.SchemaName, Strict: openai.Bool(true), Schema: req.Schema},
		}}
	}
	return p, nil
}

// failed maps an SDK error. The server's text is not repeated: it may quote the
// prompt or the key.
func (p *Provider) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var api *openai.Error
	if !errors.As(err, &api) {
		return cutOff(err)
	}
	e := &provider.Error{Status: api.StatusCode, Cause: err, RetryAfter: retryAfter(api.Response)}
	switch {
	case api.StatusCode == http.StatusUnauthorized || api.StatusCode == http.StatusForbidden:
		e.Code, e.Message = "credential_required", "the model's server refused the key, or wants one; set WAYBILL_PROVIDER_"+envID(p.id)+"_KEY"
	case api.StatusCode == http.StatusNotFound:
		e.Code, e.Message = "model_not_supported", "the model's server does not know the model or the path"
	case api.StatusCode == http.StatusTooManyRequests:
		e.Code, e.Message, e.Retryable = "provider_quota_exhausted", "the model's server refused for quota or rate", true
	case api.StatusCode == http.StatusRequestEntityTooLarge || api.Code == "context_length_exceeded":
		e.Code, e.Message = "content_too_long", "the prompt is longer than the model takes"
	case api.StatusCode >= 400 && api.StatusCode < 500 && strings.Contains(api.Param, "response_format"):
		e.Code, e.Message = "response_schema_invalid", "the model's server does not accept the response schema"
	case api.StatusCode >= 400 && api.StatusCode < 500:
		e.Code, e.Message = "validation_error", "the model's server does not accept the request"
	default:
		e.Code, e.Message, e.Retryable = "provider_unavailable", "the model's server failed", true
	}
	return e
}

func envID(id string) string { return strings.ToUpper(strings.ReplaceAll(id, "-", "_")) }

func cutOff(cause error) error {
	return &provider.Error{
		Code: "provider_unavailable", Message: "the model's server could not be reached or ended its answer early", Retryable: true, Cause: cause,
	}
}

func retryAfter(res *http.Response) time.Duration {
	if res == nil {
		return 0
	}
	d, err := time.ParseDuration(res.Header.Get("Retry-After") + "s")
	if err != nil || d < 0 {
		return 0
	}
	return d
}
