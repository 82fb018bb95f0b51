// Package gemini implements Google's Gemini API with the official SDK, also as Vertex AI serves it. One
// call is one streamGenerateContent request. The SDK's retries and continuations are off: retrying belongs to
// the run loop.
//
// The steps of a call:
//
//	Request -> params (the vendor's words) -> wire (key, framing) -> stream -> answer (text, stop, usage)
//	                                                                      \-> failure (status or break) -> *provider.Error
//
// The response schema is sent byte for byte: as the response's JSON schema, or as the parameters of
// one function that must be called.
//
// The vendor has no idempotency key, so none is sent. It reports the same reason for a natural end
// and for a stop sequence: both are clean.
package gemini

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"google.golang.org/genai"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// Provider is one account with the vendor. It is safe for concurrent use; Close
// it when done.
type Provider struct {
	server outbound.Server // without the key
	vertex *Vertex         // nil for the vendor's own API
	// hostKey is a function because fmt prints the values of unexported fields.
	hostKey func() provider.Secret
	models  *genai.Models
	http    *http.Client
}

// New validates the configuration and connects to no server.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	// The options set here are not read from the environment: backend, key and address. The key is
	// a marker, because the SDK's errors print its options; the transport replaces it by the real
	// one.
	return open(cfg.server(), nil, genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: provider.Redacted,
		HTTPOptions: genai.HTTPOptions{APIVersion: apiVersion},
	})
}

// Vertex is a project of Vertex AI.
type Vertex struct {
	Project, Location string
	// Token returns an access token for the project.
	Token func(context.Context) (provider.Secret, error)
	// Header is added to every request.
	Header http.Header
}

// NewOnVertex returns a provider of a project's models. The server is valid.
func NewOnVertex(v Vertex, server outbound.Server) (*Provider, error) {
	return open(server, &v, genai.ClientConfig{
		Backend: genai.BackendVertexAI, Project: v.Project, Location: v.Location,
		HTTPOptions: genai.HTTPOptions{APIVersion: vertexVersion},
	})
}

func open(server outbound.Server, vertex *Vertex, cfg genai.ClientConfig) (*Provider, error) {
	host := server.APIKey
	server.APIKey = ""
	p := &Provider{server: server, vertex: vertex, hostKey: func() provider.Secret { return host }}
	p.http = outbound.NewClient(p.server.Timeouts(), p.server.Extras)
	p.http.Transport = wire{RoundTripper: p.http.Transport, vertex: vertex}
	cfg.HTTPClient, cfg.HTTPOptions.BaseURL = p.http, p.server.BaseURL
	client, err := genai.NewClient(context.Background(), &cfg)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.server.ID, err)
	}
	p.models = client.Models
	return p, nil
}

// ID names the provider.
func (p *Provider) ID() string { return p.server.ID }

// Dialect is the subset of JSON Schema that the vendor's schemas are written in.
func (p *Provider) Dialect(string) projection.Vendor { return projection.Gemini }

// SchemaForms lists all forms.
func (*Provider) SchemaForms(string) []provider.SchemaVia {
	return []provider.SchemaVia{provider.ViaFormat, provider.ViaTool, provider.ViaObject, provider.ViaWords}
}

// Close drops idle connections. Calls in progress continue.
func (p *Provider) Close() { p.http.CloseIdleConnections() }

// Call makes one streaming call.
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
	if !a.any && !x.labeled {
		return provider.Result{}, outbound.NewTransportError(outbound.ErrNoStream)
	}
	return a.finish()
}

// keyFor returns the key of the call: the tenant's own, else the host's.
func (p *Provider) keyFor(req provider.Request) provider.Secret {
	if req.Credential != "" {
		return req.Credential
	}
	return p.hostKey()
}

// validModel matches names that are one path segment, because the model is part of the path.
var validModel = regexp.MustCompile(`^((models|tunedModels)/)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// check rejects requests that the vendor need not see.
func (p *Provider) check(req provider.Request) error {
	if err := p.server.Check(req); err != nil {
		return err
	}
	if !validModel.MatchString(req.Model) || strings.Contains(req.Model, "..") {
		return &provider.Error{
			Code:    provider.CodeModelNotSupported,
			Message: fmt.Sprintf("model: %q is no name of a Gemini model; want one such as gemini-2.5-flash", req.Model),
		}
	}
	if n := len(req.Stop); n > maxStops {
		return &provider.Error{
			Code:    provider.CodeInvalidRequest,
			Message: fmt.Sprintf("stop: %d sequences; Gemini takes %d at most", n, maxStops),
		}
	}
	return nil
}
