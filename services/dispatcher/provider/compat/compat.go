// Package compat speaks Chat Completions, over OpenAI's official SDK: to OpenAI
// itself and to any server compatible with it. What differs between the two is the
// configuration's Dialect. The SDK's own retries are off: retrying is the run loop's.
//
// Chat Completions, not the newer Responses API, because compatible servers have
// it, and a host that asks once and keeps the conversation itself misses nothing
// there: strict schemas, refusals, usage, forced tools, image, sound and file parts,
// spoken answers. It draws no pictures, so Result.Media holds sound alone; OpenAI's
// models show no thoughts in it, and the newest take no tools while they think, so
// schemas go to them as a response format.
//
// The way of a call:
//
//	Request -> params (the vendor's words) -> stream of chunks -> answer (text, stop, usage)
//	                                      \-> failure (status or break) -> *provider.Error
//
// The response schema is sent as it is given, in strict mode: as response format or
// as the one tool the model is forced to call.
package compat

import (
	"context"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"waybill.dev/waybill/protocol/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// Provider is one server. It is safe for concurrent use; Close it when done.
type Provider struct {
	cfg    Config          // without the key, which the service has
	server outbound.Server // the same
	// keyed says that the host has a key.
	keyed bool
	chat  openai.ChatCompletionService
	http  *http.Client
}

// New checks the configuration and connects to nothing.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Provider{cfg: cfg, server: cfg.server(), keyed: cfg.APIKey != ""}
	p.cfg.APIKey, p.server.APIKey = "", ""
	p.http = outbound.NewClient(p.server.Timeouts())
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(p.server.BaseURL, "/") + "/"), option.WithHTTPClient(p.http), option.WithMaxRetries(0),
	}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(string(cfg.APIKey)))
	}
	// The service alone, for openai.NewClient takes key, address and headers from
	// OPENAI_* variables, which are meant for another server.
	p.chat = openai.NewChatCompletionService(opts...)
	return p, nil
}

// ID names the provider.
func (p *Provider) ID() string { return p.server.ID }

// Dialect is the strict mode that schemas are put to: the vendor's own, which
// compatible servers follow.
func (p *Provider) Dialect() projection.Vendor { return projection.OpenAI }

// RequiresDialect is true of OpenAI: of what other servers can be told, more or less is known
// to none but their operators.
func (p *Provider) RequiresDialect() bool { return p.cfg.Dialect == DialectOpenAI }

// Close drops idle connections. Calls in progress go on, and so do for a second the streams that have
// not ended with their answer.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Call asks the server once, streaming.
func (p *Provider) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	if err := p.check(req); err != nil {
		return provider.Result{}, err
	}
	params, err := p.cfg.paramsOf(req)
	if err != nil {
		return provider.Result{}, err
	}
	ctx = outbound.Within(ctx, req.Timeouts)
	s := p.openStream(ctx, params, options(req))
	defer s.release()
	a := newAnswer(req, emit)
	for s.next() {
		if err := a.addChunk(s.current); err != nil {
			return provider.Result{}, err
		}
	}
	if err := s.failure(); err != nil {
		return p.failed(ctx, req, err, a)
	}
	return a.finish()
}

// check refuses what need not be asked.
func (p *Provider) check(req provider.Request) error {
	if err := p.server.Check(req); err != nil {
		return err
	}
	if p.cfg.Dialect == DialectOpenAI && !p.keyed && req.Credential == "" {
		return &provider.Error{Code: provider.CodeCredentialRequired, Message: "OpenAI wants a key and there is none; set " + p.server.KeyOf(req)}
	}
	return nil
}
