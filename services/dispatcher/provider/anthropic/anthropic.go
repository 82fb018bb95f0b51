// Package anthropic implements Anthropic's Messages API with the official SDK. The SDK's retries
// and traces are off: retrying belongs to the run loop, and its traces could contain prompts. A
// Platform adapts the calls to clouds that serve the vendor's models.
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
	"slices"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/anthropics/anthropic-sdk-go/shared"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// Provider is the vendor's API with one key. It is safe for concurrent use; Close it when done.
type Provider struct {
	server   outbound.Server // without the key, which the service has
	platform Platform
	// messages sends requests with the host's credentials, keyed those with a tenant's key.
	messages, keyed anthropic.MessageService
	http            *http.Client
}

// Platform adapts calls to a cloud that serves the vendor's models. The zero Platform is the vendor's
// own API.
type Platform struct {
	// Options adapt and sign requests with the host's credentials. They come after the operator's
	// additions, which a signature includes.
	Options []option.RequestOption
	// KeyOptions adapt requests with a key, which is sent as Key says.
	KeyOptions []option.RequestOption
	// Key returns the option that sends a key; nil uses the vendor's header.
	Key func(provider.Secret) option.RequestOption
	// ErrorType returns the vendor's type of the platform's error; empty for none. Nil has none.
	ErrorType func(*outbound.ServerError) shared.ErrorType
	// Secret returns the secret that requests were sent with last; nil for none. Errors that repeat it
	// are quoted without it.
	Secret func() provider.Secret
}

// New validates the configuration and connects to no server.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return NewOn(Platform{}, cfg.server()), nil
}

// NewOn returns a provider on a platform. The server is valid.
func NewOn(platform Platform, server outbound.Server) *Provider {
	key := server.APIKey
	server.APIKey = ""
	p := &Provider{server: server, platform: platform}
	if platform.Key == nil {
		p.platform.Key = func(key provider.Secret) option.RequestOption { return option.WithAPIKey(string(key)) }
	}
	p.http = outbound.NewClient(p.server.Timeouts(), outbound.Extras{})
	opts := []option.RequestOption{
		option.WithHTTPClient(p.http), option.WithMaxRetries(0),
		// The environment would otherwise decide both.
		option.WithoutOpenTelemetry(), option.WithOpenTelemetryPropagation(false),
		option.WithMiddleware(outbound.ReadErrors, server.Extras.Middleware),
	}
	address := option.WithBaseURL(strings.TrimSuffix(p.server.BaseURL, "/") + "/")
	keyed := append(slices.Concat(opts, platform.KeyOptions), address)
	hosts := append(slices.Concat(opts, platform.Options), address)
	if key != "" {
		hosts = append(slices.Clone(keyed), p.platform.Key(key))
	}
	// Only the service: anthropic.NewClient reads keys, address, headers and login profiles from
	// ANTHROPIC_* variables, which are meant for other programs.
	p.messages, p.keyed = anthropic.NewMessageService(hosts...), anthropic.NewMessageService(keyed...)
	return p
}

// ID names the provider.
func (p *Provider) ID() string { return p.server.ID }

// Dialect is the subset of JSON Schema in the vendor's strict mode.
func (p *Provider) Dialect(string) projection.Vendor { return projection.Anthropic }

// SchemaForms lists the forms of the vendor, which has none for any JSON object.
func (*Provider) SchemaForms(string) []provider.SchemaVia {
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
	messages := p.messages
	if req.Credential != "" {
		messages = p.keyed
	}
	var response *http.Response
	s := messages.NewStreaming(ctx, params, append(p.options(req), option.WithResponseInto(&response))...)
	defer func() { _ = s.Close() }() // not used any more
	a := newAnswer(req, emit)
	for !a.stopped && next(s, &err) {
		if err := a.addEvent(s.Current()); err != nil {
			return provider.Result{}, err
		}
	}
	if !a.stopped && err != nil {
		return p.failed(ctx, err, req, a)
	}
	if !a.started && response != nil && !outbound.IsEventStream(response) {
		return provider.Result{}, outbound.NewTransportError(outbound.ErrNoStream)
	}
	res, err := a.finish()
	if err == nil {
		drain(s, cancel)
	}
	return res, err
}

// next reads an event; false at the end or after an error. The SDK panics at damaged frames of Amazon's
// streams, which next converts to an error.
func next(s *ssestream.Stream[anthropic.MessageStreamEventUnion], err *error) (ok bool) {
	defer func() {
		if recover() != nil {
			ok, *err = false, outbound.ErrGarbage
		}
	}()
	if s.Next() {
		return true
	}
	*err = s.Err()
	return false
}

// drain reads the rest of a complete answer's stream for a moment, so that its connection can be
// reused.
func drain(s *ssestream.Stream[anthropic.MessageStreamEventUnion], cancel context.CancelFunc) {
	const patience = 100 * time.Millisecond
	timer := time.AfterFunc(patience, cancel)
	defer timer.Stop()
	var err error
	for next(s, &err) { //nolint:revive // data after the end is ignored
	}
}

// options sets the tenant's key, the idempotency key and the trace context.
func (p *Provider) options(req provider.Request) []option.RequestOption {
	var out []option.RequestOption
	if req.Credential != "" {
		out = append(out, p.platform.Key(req.Credential))
	}
	if req.InvocationID != "" {
		out = append(out, option.WithHeader("Idempotency-Key", outbound.HeaderValue(req.InvocationID)))
	}
	if req.Traceparent != "" {
		out = append(out, option.WithHeader("Traceparent", outbound.HeaderValue(req.Traceparent)))
	}
	return out
}
