// Package vertex calls models on Google's Vertex AI: Gemini with Google's official SDK, and Claude with
// Anthropic's. Both use the same credentials.
//
// Anthropic's own package for Vertex AI is not used: it brings a second library for Google's
// credentials and its gRPC transport, for two changes of a request.
package vertex

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/anthropic"
	"waybill.dev/waybill/services/dispatcher/provider/gemini"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// DefaultID is the provider's default id.
const DefaultID = "vertex"

// Config describes a project. The server's APIKey is unused.
type Config struct {
	Server outbound.Server
	// Project is the project's id; empty uses that of the environment or the credentials.
	Project string
	// Location is the location of the models; empty is global.
	Location string
	// Credentials is a document of credentials, such as the key of a service account; empty uses
	// Google's default chain.
	Credentials provider.Secret
}

// Provider is a project's models. It is safe for concurrent use; Close it when done.
type Provider struct {
	server outbound.Server
	gemini *gemini.Provider
	claude *anthropic.Provider
}

// scope is the scope of access tokens.
const scope = "https://www.googleapis.com/auth/cloud-platform"

var (
	validProject  = regexp.MustCompile(`^[a-z][a-z0-9:.-]{0,127}$`)
	validLocation = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)
)

// New validates the configuration and connects to no model's server. It finds the credentials.
func New(cfg Config) (*Provider, error) {
	if cfg.Location == "" {
		cfg.Location = "global"
	}
	rules := rulesOf(cfg.Location)
	server := cfg.Server.WithDefaults(rules)
	fail := func(field, remedy string) (*Provider, error) {
		return nil, &outbound.InvalidError{ID: server.ID, Findings: []outbound.Finding{{Field: field, Remedy: remedy}}}
	}
	server.APIKey = ""
	if err := server.Validate(rules, cfg.findings()...); err != nil {
		return nil, err
	}
	creds, err := credentialsOf(cfg.Credentials)
	if err != nil { // its text can hold parts of the document
		return fail("key", "want Google's credentials: set key to a document of them, or GOOGLE_APPLICATION_CREDENTIALS to its file")
	}
	project, header := propertiesOf(creds)
	switch {
	case cfg.Project != "":
		project = cfg.Project
	case os.Getenv("GOOGLE_CLOUD_PROJECT") != "":
		project = os.Getenv("GOOGLE_CLOUD_PROJECT")
	}
	switch {
	case project == "":
		return fail("google.project", "missing; set it, or GOOGLE_CLOUD_PROJECT")
	case !validProject.MatchString(project):
		return fail("google.project", fmt.Sprintf("%q: want the id of a project", project))
	}
	tokens := &tokenSource{creds: creds}
	p := &Provider{server: server}
	p.gemini, err = gemini.NewOnVertex(gemini.Vertex{
		Project: project, Location: cfg.Location, Token: tokens.token, Header: header,
	}, server)
	if err != nil {
		return nil, err
	}
	c := claude{project: project, location: cfg.Location, tokens: tokens, header: header}
	p.claude = anthropic.NewOn(c.platform(), server)
	return p, nil
}

// rulesOf are the rules of the servers of a location.
func rulesOf(location string) outbound.Rules {
	return outbound.Rules{
		ID:      DefaultID,
		BaseURL: addressOf(location),
		Form:    "http(s)://host[:port][/path]",
		Example: addressOf("europe-west4"),
		Adds:    "/v1",
	}
}

// Validate returns all problems that do not depend on the environment.
func (c Config) Validate() error {
	rules := rulesOf("global")
	server := c.Server.WithDefaults(rules)
	server.APIKey = ""
	return server.Validate(rules, c.findings()...)
}

// findings are the problems of the project and the location, if they are set.
func (c Config) findings() (out []outbound.Finding) {
	if c.Project != "" && !validProject.MatchString(c.Project) {
		out = append(out, outbound.Finding{Field: "google.project", Value: c.Project, Remedy: "want the id of a project"})
	}
	if c.Location != "" && !validLocation.MatchString(c.Location) {
		out = append(out, outbound.Finding{Field: "google.location", Value: c.Location, Remedy: "want global, or a location such as europe-west4"})
	}
	return out
}

// credentialsOf reads a document of credentials, whose type says how to sign in; an empty one uses the
// default chain.
func credentialsOf(doc provider.Secret) (*auth.Credentials, error) {
	options := &credentials.DetectOptions{
		Scopes: []string{scope}, Client: tokenClient(),
		Logger: slog.New(slog.DiscardHandler), // a variable of the environment would log tokens
	}
	if doc == "" {
		return credentials.DetectDefault(options)
	}
	kind, _ := strictjson.String(strictjson.Object([]byte(doc))["type"])
	return credentials.NewCredentialsFromJSON(credentials.CredType(kind), []byte(doc), options)
}

// tokenClient returns the client of the servers of tokens. They are called once an hour, so it keeps no
// connections.
func tokenClient() *http.Client {
	const patience = 30 * time.Second
	return &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true},
		Timeout:   patience,
	}
}

// addressOf returns the vendor's address of a location.
func addressOf(location string) string {
	switch location {
	case "global":
		return "https://aiplatform.googleapis.com"
	case "us", "eu":
		return "https://aiplatform." + location + ".rep.googleapis.com"
	default:
		return "https://" + location + "-aiplatform.googleapis.com"
	}
}

// propertiesOf returns the credentials' project, and the header that names the project to bill. On
// Google's machines they come from the metadata server.
func propertiesOf(creds *auth.Credentials) (project string, header http.Header) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	project, _ = creds.ProjectID(ctx) // without one, the settings must have it
	header = http.Header{}
	if quota, err := creds.QuotaProjectID(ctx); err == nil && quota != "" {
		header.Set("X-Goog-User-Project", quota)
	}
	return project, header
}

// tokenSource returns access tokens. It is safe for concurrent use.
type tokenSource struct {
	creds *auth.Credentials
	last  atomic.Pointer[auth.Token]
}

// secret is the token that was used last.
func (t *tokenSource) secret() provider.Secret {
	if last := t.last.Load(); last != nil {
		return provider.Secret(last.Value)
	}
	return ""
}

// token returns a token that is valid for a while, or a *provider.Error without the text of the
// source: it can name files and addresses of the host.
func (t *tokenSource) token(ctx context.Context) (provider.Secret, error) {
	token, err := t.creds.Token(ctx)
	if err == nil {
		t.last.Store(token)
		return provider.Secret(token.Value), nil
	}
	e := &provider.Error{
		Code:    provider.CodeCredentialRequired,
		Message: "Google gives no access token for the host's credentials; check the key of the provider and the permissions of its account",
		Cause:   err,
	}
	refused, ok := errors.AsType[*auth.Error](err)
	if !ok || refused.Response == nil || refused.Response.StatusCode >= http.StatusInternalServerError {
		e.Code, e.Message, e.Retryable = provider.CodeUnavailable, "Google's server of access tokens could not be reached, or failed", true
	}
	return "", e
}

// isClaude reports whether Anthropic made a model.
func isClaude(model string) bool { return strings.HasPrefix(model, "claude") }

// ID names the provider.
func (p *Provider) ID() string { return p.server.ID }

// Dialect is that of the model's vendor.
func (p *Provider) Dialect(model string) projection.Vendor {
	if isClaude(model) {
		return p.claude.Dialect(model)
	}
	return p.gemini.Dialect(model)
}

// SchemaForms lists those of the model's vendor.
func (p *Provider) SchemaForms(model string) []provider.SchemaVia {
	if isClaude(model) {
		return p.claude.SchemaForms(model)
	}
	return p.gemini.SchemaForms(model)
}

// Close drops idle connections. Calls in progress continue.
func (p *Provider) Close() {
	p.gemini.Close()
	p.claude.Close()
}

// Call makes one streaming call.
func (p *Provider) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	if req.Credential != "" {
		return provider.Result{}, &provider.Error{
			Code:    provider.CodeCredentialForbidden,
			Message: "provider " + p.ID() + " signs in with the host's Google credentials; it accepts no key of a tenant",
		}
	}
	if isClaude(req.Model) {
		return p.claude.Call(ctx, req, emit)
	}
	return p.gemini.Call(ctx, req, emit)
}
