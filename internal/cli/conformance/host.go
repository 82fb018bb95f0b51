package conformance

import (
	"context"
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
)

// discoverySchemaJSON has what every host must advertise, and the families that every
// client reads (OpenWOP host contract §1.3, §1.4).
//
//go:embed discovery.schema.json
var discoverySchemaJSON []byte

// discoverySchema is compiled on first use; the document is part of the binary and a test
// compiles it.
var discoverySchema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("discovery", discoverySchemaJSON)
	if err != nil {
		panic("conformance: embedded schema: " + err.Error())
	}
	return s
})

// ofHost are the checks that need no run.
func ofHost() []check {
	return []check{
		{
			"discovery.public",
			"the discovery document needs no credential, and says how long it may be kept", "host core 1.1",
			discoveryPublic,
		},
		{"discovery.schema", "it has what every host advertises, each in its form", "host core 1.3", discoveryForm},
		{"discovery.version", "the version of the protocol is 1.x, in two numbers", "host core 1.3", discoveryVersion},
		{
			"discovery.kinds", "the universal kinds are among those it takes, and each kind has a version",
			"host core 1.3", discoveryKinds,
		},
		{"discovery.etag", "who has the document is not sent it again", "host core 1.1", discoveryTag},
		{"discovery.schemas", "the schema of each kind is served", "host core 1.5", kindSchemas},
		{"discovery.openapi", "the API describes itself", "host core 2.2", openAPI},
		{"auth.required", "who shows no credential learns nothing", "host core 8.1", authRequired},
		{"auth.unknown-key", "a credential that nobody gave out is none", "host core 8.1", authUnknown},
		{"errors.unknown-run", "a run that is not there is refused as every error is", "host core 9.1", unknownRunError},
		{"errors.unknown-path", "so is an address that is not there", "host core 9.1", unknownPathError},
		{"http.traceparent", "an answer carries the trace of its request", "host core 2.0", traced},
	}
}

func discoveryPublic(_ context.Context, p *probe, f *findings) error {
	f.answered("GET "+wellKnown, p.discovery, 200, "application/json")
	if p.discovery.Header.Get("Cache-Control") == "" {
		f.add("it has no Cache-Control")
	}
	return nil
}

func discoveryForm(_ context.Context, p *probe, f *findings) error {
	for _, v := range discoverySchema().Validate(p.discovery.Body) {
		f.add("at %q: %s", v.InstancePath, v.Message)
	}
	return nil
}

var twoNumbers = regexp.MustCompile(`^1\.(0|[1-9][0-9]*)$`)

func discoveryVersion(_ context.Context, p *probe, f *findings) error {
	if !twoNumbers.MatchString(p.offer.ProtocolVersion) {
		f.add("protocolVersion is %q", p.offer.ProtocolVersion)
	}
	return nil
}

// universal are the kinds that every host takes that takes any.
var universal = []string{"clarification.request", "schema.request", "schema.response", "error"}

func discoveryKinds(_ context.Context, p *probe, f *findings) error {
	kinds := p.offer.SupportedEnvelopes
	if len(kinds) == 0 {
		return skipped("it advertises no kinds")
	}
	for _, kind := range universal {
		if !slices.Contains(kinds, kind) {
			f.add("supportedEnvelopes lacks %s", kind)
		}
	}
	for _, kind := range kinds {
		if p.offer.SchemaVersions[kind] == nil {
			f.add("schemaVersions lacks %s", kind)
		}
	}
	return nil
}

func discoveryTag(ctx context.Context, p *probe, f *findings) error {
	tag := p.discovery.Header.Get("ETag")
	if tag == "" {
		return skipped("it sends no ETag, which it may")
	}
	return unchanged(ctx, p.open, wellKnown, tag, f)
}

// unchanged wants a document not to be sent again.
func unchanged(ctx context.Context, c *client.Client, path, tag string, f *findings) error {
	a, err := get(ctx, c, path, nil, "If-None-Match", tag)
	if err != nil {
		return err
	}
	if f.answered("with its ETag", a, 304, "") && len(a.Body) > 0 {
		f.add("HTTP 304 has a body")
	}
	return nil
}

func kindSchemas(ctx context.Context, p *probe, f *findings) error {
	if len(p.offer.SupportedEnvelopes) == 0 {
		return skipped("it advertises no kinds")
	}
	for _, kind := range p.offer.SupportedEnvelopes {
		a, err := get(ctx, p.open, "/schemas/envelopes/"+kind+".schema.json", nil)
		if err != nil {
			return err
		}
		if f.answered(kind, a, 200, "application/schema+json") && !json.Valid(a.Body) {
			f.add("%s: it is no JSON", kind)
		}
	}
	a, err := get(ctx, p.open, "/schemas/envelopes/conformance.unknown-kind.schema.json", nil)
	if err != nil {
		return err
	}
	f.refused("of an unknown kind", a, 404, fault.NotFound)
	return nil
}

var openAPIVersion = regexp.MustCompile(`^3\.[1-9]`)

func openAPI(ctx context.Context, p *probe, f *findings) error {
	a, err := get(ctx, p.open, "/v1/openapi.json", nil)
	if err != nil {
		return err
	}
	if !f.answered("GET /v1/openapi.json", a, 200, "") {
		return nil
	}
	var doc struct{ OpenAPI string }
	if json.Unmarshal(a.Body, &doc) != nil || !openAPIVersion.MatchString(doc.OpenAPI) {
		f.add("its member openapi is not 3.1 or later")
	}
	return nil
}

// authRequired: whether a run exists is told to nobody without a credential.
func authRequired(ctx context.Context, p *probe, f *findings) error {
	for _, below := range []string{"", "/events", "/events/poll"} {
		a, err := get(ctx, p.open, "/v1/runs/"+unknownRun()+below, nil)
		if err != nil {
			return err
		}
		f.refused("GET /v1/runs/{runId}"+below, a, 401, fault.Unauthenticated)
	}
	return nil
}

func authUnknown(ctx context.Context, p *probe, f *findings) error {
	for _, credential := range []string{"Bearer hk_nobody_gave_this_out", "Basic bm9ib2R5"} {
		a, err := get(ctx, p.open, "/v1/runs/"+unknownRun(), nil, "Authorization", credential)
		if err != nil {
			return err
		}
		scheme, _, _ := strings.Cut(credential, " ")
		f.refused(scheme, a, 401, fault.Unauthenticated)
	}
	return nil
}

// needsKey says of a check that it takes a credential.
func (p *probe) needsKey() error {
	if p.hasKey {
		return nil
	}
	return skipped("it takes a credential")
}

func unknownRunError(ctx context.Context, p *probe, f *findings) error {
	if err := p.needsKey(); err != nil {
		return err
	}
	for _, below := range []string{"", "/events", "/events/poll"} {
		a, err := get(ctx, p.keyed, "/v1/runs/"+unknownRun()+below, nil)
		if err != nil {
			return err
		}
		f.refused("GET /v1/runs/{runId}"+below, a, 404, fault.RunNotFound)
	}
	return nil
}

func unknownPathError(ctx context.Context, p *probe, f *findings) error {
	if err := p.needsKey(); err != nil {
		return err
	}
	a, err := get(ctx, p.keyed, "/v1/conformance-unknown-path", nil)
	if err != nil {
		return err
	}
	f.refused("GET /v1/conformance-unknown-path", a, 404, fault.NotFound)
	return nil
}

// traced: the host takes the caller's trace on, in a span of its own.
func traced(ctx context.Context, p *probe, f *findings) error {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	a, err := get(ctx, p.open, wellKnown, nil, "Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	if err != nil {
		return err
	}
	if got := a.Header.Get("Traceparent"); !strings.HasPrefix(got, "00-"+trace+"-") {
		f.add("it answers with traceparent %q, which is of another trace", got)
	}
	return nil
}
