// Package gemini speaks to Google's Gemini API, over the official SDK: one call
// is one streamGenerateContent. The SDK's own retries and continuations are off:
// asking again is the run loop's.
//
// The way of a call:
//
//	Request -> params (the vendor's words) -> wire (key, framing) -> stream -> answer (text, stop, usage)
//	                                                                      \-> failure (status or break) -> *provider.Error
//
// The response schema is sent as it is given, byte for byte: as the response's
// JSON schema, or as the parameters of one function that must be called.
//
// The vendor has no idempotency key, so none is sent, and it gives one reason for
// a model that ended by itself and for one that met a stop sequence: both are
// clean.
package gemini

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/genai"

	"waybill.dev/waybill/protocol/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// Provider is one account with the vendor. It is safe for concurrent use; Close
// it when done.
type Provider struct {
	server outbound.Server // without the key
	// hostKey is a function because fmt shows what an unexported field holds
	// without asking the field's type.
	hostKey func() provider.Secret
	models  *genai.Models
	http    *http.Client
}

// New checks the configuration and connects to nothing.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	host := cfg.APIKey
	p := &Provider{server: cfg.server(), hostKey: func() provider.Secret { return host }}
	p.server.APIKey = ""
	p.http = outbound.NewClient(p.server.Timeouts())
	p.http.Transport = wire{RoundTripper: p.http.Transport}
	// What is set here the SDK does not take from the environment: backend, key and
	// address. The key is a marker, because errors of the SDK print its options: the
	// wire puts the true one in its place.
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: provider.Redacted, HTTPClient: p.http,
		HTTPOptions: genai.HTTPOptions{BaseURL: p.server.BaseURL, APIVersion: apiVersion},
	})
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.server.ID, err)
	}
	p.models = client.Models
	return p, nil
}

// ID names the provider.
func (p *Provider) ID() string { return p.server.ID }

// Dialect is the subset of JSON Schema that the vendor's schemas are written in.
func (p *Provider) Dialect() projection.Vendor { return projection.Gemini }

// RequiresDialect is true: the vendor refuses, or drops, what it does not know.
func (*Provider) RequiresDialect() bool { return true }

// Close drops idle connections. Calls in progress go on.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Call asks the vendor once, streaming.
func (p *Provider) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	if err := p.check(req); err != nil {
		return provider.Result{}, err
	}
	q, err := paramsOf(req)
	if err != nil {
		return provider.Result{}, err
	}
	x := &exchange{key: p.keyFor(req), keyName: p.server.KeyOf(req)}
	ctx, cancel := context.WithCancel(context.WithValue(outbound.Within(ctx, req.Timeouts), exchangeKey{}, x))
	defer cancel() // ends the connection when emit fails
	a := newAnswer(req, x, emit)
	next, stop := pull(p.models.GenerateContentStream(ctx, req.Model, q.contents, q.config))
	defer stop()
	for {
		r, err := next()
		if err != nil {
			return p.failed(ctx, err, x)
		}
		if r == nil {
			break
		}
		if err := a.addResponse(r); err != nil {
			return provider.Result{}, err
		}
	}
	if x.broken != nil {
		return p.failed(ctx, x.broken, x)
	}
	return a.finish()
}

// keyFor is the key of the call: the tenant's own, or else the host's.
func (p *Provider) keyFor(req provider.Request) provider.Secret {
	if req.Credential != "" {
		return req.Credential
	}
	return p.hostKey()
}

// validModel are names that are one segment of a path: the model goes there.
var validModel = regexp.MustCompile(`^((models|tunedModels)/)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// check refuses what need not be asked.
func (p *Provider) check(req provider.Request) error {
	if err := p.server.Check(req); err != nil {
		return err
	}
	if !validModel.MatchString(req.Model) || strings.Contains(req.Model, "..") {
		return &provider.Error{Code: provider.CodeModelNotSupported, Message: fmt.Sprintf("model: %q is no name of a Gemini model; want one such as gemini-2.5-flash", req.Model)}
	}
	if n := len(req.Stop); n > maxStops {
		return &provider.Error{Code: provider.CodeInvalidRequest, Message: fmt.Sprintf("stop: %d sequences; Gemini takes %d at most", n, maxStops)}
	}
	return nil
}
