// Package compat implements Chat Completions and the Responses API with OpenAI's official SDK, for
// OpenAI and compatible servers. The configuration selects the interface, and its Dialect the
// differences. The SDK's retries are off: retrying belongs to the run loop.
//
// Chat Completions is the default because compatible servers support it. It has strict schemas,
// refusals, usage, forced tools, image, sound and file parts, spoken answers. It has no image output,
// so Result.Media holds sound only. OpenAI's models show no thoughts in it, and the newest accept no
// tools while they think, so their schemas are sent as a response format. In the Responses API these
// models show summaries of their thoughts; it has no sound, no seed and no stop sequences.
//
// The steps of a call:
//
//	Request -> params (the vendor's words) -> stream of chunks -> answer (text, stop, usage)
//	                                      \-> failure (status or break) -> *provider.Error
//
// Events of the Responses API are read as chunks: both say the same about an answer.
//
// The response schema is sent unchanged, as response format or as the one tool that the model must
// call. Strict mode is on if the schema was projected.
package compat

import (
	"context"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// Provider is one server. It is safe for concurrent use; Close it when done.
type Provider struct {
	cfg    Config          // without the key, which the service has
	server outbound.Server // the same
	// keyed means that the host has a key.
	keyed     bool
	chat      openai.ChatCompletionService
	responses responses.ResponseService
	http      *http.Client
}

// New validates the configuration and connects to no server.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Provider{cfg: cfg, server: cfg.server(), keyed: cfg.APIKey != ""}
	p.cfg.APIKey, p.server.APIKey = "", ""
	p.http = outbound.NewClient(p.server.Timeouts(), p.server.Extras)
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(p.server.BaseURL, "/") + "/"),
		option.WithHTTPClient(p.http), option.WithMaxRetries(0),
		option.WithMiddleware(outbound.ReadErrors),
	}
	if cfg.APIKey != "" {
		opts = append(opts, cfg.Dialect.withKey(cfg.APIKey))
	}
	// Only the services: openai.NewClient reads key, address and headers from OPENAI_* variables,
	// which are meant for other programs.
	p.chat = openai.NewChatCompletionService(opts...)
	p.responses = responses.NewResponseService(opts...)
	return p, nil
}

// ID names the provider.
func (p *Provider) ID() string { return p.server.ID }

// Dialect is that of OpenAI or Azure. What other servers support is only known to their operators, who
// can name a dialect in the model catalogue.
func (p *Provider) Dialect(model string) projection.Vendor {
	switch {
	case p.cfg.Dialect == DialectAzure:
		return projection.Azure
	case p.cfg.Dialect == DialectOpenAI && strings.HasPrefix(model, tunedPrefix):
		return projection.Tuned
	case p.cfg.Dialect == DialectOpenAI:
		return projection.OpenAI
	}
	return projection.AsWritten
}

// tunedPrefix begins the names of OpenAI's fine-tuned models.
const tunedPrefix = "ft:"

// SchemaForms lists all forms: servers differ in what they accept.
func (*Provider) SchemaForms(string) []provider.SchemaVia {
	return []provider.SchemaVia{provider.ViaFormat, provider.ViaTool, provider.ViaObject, provider.ViaWords}
}

// Close drops idle connections. Calls in progress continue, and streams that have not ended with
// their answer continue for up to a second.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Call makes one streaming call.
func (p *Provider) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	if err := p.check(req); err != nil {
		return provider.Result{}, err
	}
	send, err := p.requestOf(req)
	if err != nil {
		return provider.Result{}, err
	}
	ctx = outbound.Within(ctx, req.Timeouts)
	s := p.openStream(ctx, send, p.options(req))
	defer s.release()
	a := newAnswer(req, emit)
	for s.next() {
		if err := a.addChunk(s.current); err != nil {
			return provider.Result{}, err
		}
	}
	a.ended = s.done
	if err := s.failure(); err != nil && !a.isOver() {
		return p.failed(ctx, req, err, a)
	}
	if a.chosen == nil && s.foreign {
		return provider.Result{}, outbound.NewTransportError(outbound.ErrNoStream)
	}
	if s.done && !a.usage.known() && !p.cfg.Responses {
		if u := s.lateUsage(ctx); u != nil {
			a.usage.update(*u)
		}
	}
	return a.finish()
}

// requestOf converts a validated request for the server's interface.
func (p *Provider) requestOf(req provider.Request) (request, error) {
	if p.cfg.Responses {
		params, err := p.cfg.responseParams(req)
		return func(ctx context.Context, opts ...option.RequestOption) error {
			return p.responses.NewStreaming(ctx, params, opts...).Err()
		}, err
	}
	params, err := p.cfg.paramsOf(req)
	return func(ctx context.Context, opts ...option.RequestOption) error {
		return p.chat.NewStreaming(ctx, params, opts...).Err()
	}, err
}

// check rejects requests that the server need not see.
func (p *Provider) check(req provider.Request) error {
	if err := p.server.Check(req); err != nil {
		return err
	}
	if p.cfg.Dialect.isOpenAI() && !p.keyed && req.Credential == "" {
		return &provider.Error{
			Code:    provider.CodeCredentialRequired,
			Message: "OpenAI wants a key and there is none; set " + p.server.KeyOf(req),
		}
	}
	return nil
}
