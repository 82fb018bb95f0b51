// Package anthropic speaks to Anthropic's Messages API, over the official SDK. The
// SDK's own retries and traces are off: retrying is the run loop's, and its traces
// could hold prompts.
//
// The way of a call:
//
//	Request -> params (the vendor's words) -> stream of events -> answer (text, stop, usage)
//	                                      \-> failure (status, event or break) -> *provider.Error
//
// The response schema is sent as it is given, in strict mode: as the output's
// format, or as the input of the one tool the model must call. The vendor has no
// seed; a request's is left out.
package anthropic

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"waybill.dev/waybill/protocol/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// Provider is the vendor's API under one key. It is safe for concurrent use; Close
// it when done.
type Provider struct {
	server   outbound.Server // without the key, which the service has
	messages anthropic.MessageService
	http     *http.Client
}

// New checks the configuration and connects to nothing.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Provider{server: cfg.server()}
	p.server.APIKey = ""
	p.http = outbound.NewClient(p.server.Timeouts())
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(p.server.BaseURL, "/") + "/"), option.WithHTTPClient(p.http), option.WithMaxRetries(0),
		// Each of the two would otherwise be decided by the environment.
		option.WithoutOpenTelemetry(), option.WithOpenTelemetryPropagation(false),
		option.WithMiddleware(boundEvents),
	}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(string(cfg.APIKey)))
	}
	// The service alone, for anthropic.NewClient takes keys, address, headers and
	// login profiles from ANTHROPIC_* variables, which are meant for another program.
	p.messages = anthropic.NewMessageService(opts...)
	return p, nil
}

// ID names the provider.
func (p *Provider) ID() string { return p.server.ID }

// Dialect is what of JSON Schema the vendor's strict mode takes.
func (p *Provider) Dialect() projection.Vendor { return projection.Anthropic }

// RequiresDialect is true: the vendor refuses, or drops, what it does not know.
func (*Provider) RequiresDialect() bool { return true }

// Close drops idle connections. Calls in progress go on.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Call asks the vendor once, streaming.
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
	defer func() { _ = s.Close() }() // nothing of it is used any more
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

// drain reads to the end of a whole answer's stream, so that its connection can be
// used again; a server that does not end it is not waited for.
func drain(s *ssestream.Stream[anthropic.MessageStreamEventUnion], cancel context.CancelFunc) {
	const patience = 100 * time.Millisecond
	timer := time.AfterFunc(patience, cancel)
	defer timer.Stop()
	for s.Next() { //nolint:revive // what comes after the end is nothing to anybody
	}
}

// options are what a call has beside its body: the tenant's key, what makes a
// repeated call recognizable, and what lets the vendor join the trace of the run.
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
