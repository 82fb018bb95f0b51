// Package anthropic implements Anthropic's Messages API with the official SDK. The SDK's retries
// and traces are off: retrying belongs to the run loop, and its traces could contain prompts.
//
// The steps of a call:
//
//	Request -> params (the vendor's words) -> stream of events -> answer (text, stop, usage)
//	                                      \-> failure (status, event or break) -> *provider.Error
//
// The response schema is sent unchanged in strict mode: as the output format, or as the input of
// the one tool that the model must call. The vendor has no seed, so it is ignored.
package anthropic

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// Provider is the vendor's API with one key. It is safe for concurrent use; Close it when done.
type Provider struct {
	server   outbound.Server // without the key, which the service has
	messages anthropic.MessageService
	http     *http.Client
}

// New validates the configuration and connects to no server.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Provider{server: cfg.server()}
	p.server.APIKey = ""
	p.http = outbound.NewClient(p.server.Timeouts(), outbound.Events, p.server.Extras)
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(p.server.BaseURL, "/") + "/"),
		option.WithHTTPClient(p.http), option.WithMaxRetries(0),
		// The environment would otherwise decide both.
		option.WithoutOpenTelemetry(), option.WithOpenTelemetryPropagation(false),
	}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(string(cfg.APIKey)))
	}
	// Only the service: anthropic.NewClient reads keys, address, headers and login profiles from
	// ANTHROPIC_* variables, which are meant for other programs.
	p.messages = anthropic.NewMessageService(opts...)
	return p, nil
}

// ID names the provider.
func (p *Provider) ID() string { return p.server.ID }

// Dialect is the subset of JSON Schema in the vendor's strict mode.
func (p *Provider) Dialect() projection.Vendor { return projection.Anthropic }

// SchemaForms lists the forms of the vendor, which has none for any JSON object.
func (*Provider) SchemaForms() []provider.SchemaVia {
	return []provider.SchemaVia{provider.ViaFormat, provider.ViaTool, provider.ViaWords}
}

// Close drops idle connections. Calls in progress continue.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Call makes one streaming call.
func (p *Provider) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	if err := p.server.Check(req); err != nil {
		return provider.Result{}, err
	}
	params, err := paramsOf(req)
	if err != nil {
		return provider.Result{}, err
	}
	ctx, cancel := context.WithCancel(outbound.Within(ctx, req.Timeouts))
	defer cancel() // ends the connection when emit fails
	s := p.messages.NewStreaming(ctx, params, options(req)...)
	defer func() { _ = s.Close() }() // not used any more
	a := newAnswer(req, emit)
	for !a.stopped && s.Next() {
		if err := a.addEvent(s.Current()); err != nil {
			return provider.Result{}, err
		}
	}
	if !a.stopped && s.Err() != nil {
		return p.failed(ctx, s.Err(), req, a)
	}
	res, err := a.finish()
	if err == nil {
		drain(s, cancel)
	}
	return res, err
}

// drain reads the rest of a complete answer's stream for a moment, so that its connection can be
// reused.
func drain(s *ssestream.Stream[anthropic.MessageStreamEventUnion], cancel context.CancelFunc) {
	const patience = 100 * time.Millisecond
	timer := time.AfterFunc(patience, cancel)
	defer timer.Stop()
	for s.Next() { //nolint:revive // data after the end is ignored
	}
}

// options sets the tenant's key, the idempotency key and the trace context.
func options(req provider.Request) []option.RequestOption {
	var out []option.RequestOption
	if req.Credential != "" {
		out = append(out, option.WithAPIKey(string(req.Credential)))
	}
	if req.InvocationID != "" {
		out = append(out, option.WithHeader("Idempotency-Key", outbound.HeaderValue(req.InvocationID)))
	}
	if req.Traceparent != "" {
		out = append(out, option.WithHeader("Traceparent", outbound.HeaderValue(req.Traceparent)))
	}
	return out
}
