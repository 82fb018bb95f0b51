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

// discoverySchemaJSON requires what every host must advertise, and describes the families that
// every client reads (OpenWOP host contract §1.3, §1.4).
//
//go:embed discovery.schema.json
var discoverySchemaJSON []byte

// discoverySchema is compiled on first use. It cannot fail: a test compiles the same document.
var discoverySchema = sync.OnceValue(func() *schema.Schema {
	s, err := schema.Compile("discovery", discoverySchemaJSON)
	if err != nil {
		panic("conformance: embedded schema: " + err.Error())
	}
	return s
})

// hostChecks are the checks that need no run.
func hostChecks() []check {
	return []check{
		{
			"discovery.public",
			"discovery needs no credential and has Cache-Control", "host core 1.1",
			discoveryPublic,
		},
		{"discovery.schema", "discovery has the required members, with the right types", "host core 1.3", discoveryForm},
		{"discovery.version", "protocolVersion is 1.MINOR", "host core 1.3", discoveryVersion},
		{
			"discovery.kinds", "supportedEnvelopes has the universal kinds; every kind has a version",
			"host core 1.3", discoveryKinds,
		},
		{"discovery.etag", "discovery answers 304 to its ETag", "host core 1.1", discoveryTag},
		{"discovery.schemas", "the schema of each kind is served", "host core 1.5", kindSchemas},
		{"discovery.openapi", "an OpenAPI document is served", "host core 2.2", openAPI},
		{"auth.required", "requests without a credential get 401, whether or not the run exists", "host core 8.1", authRequired},
		{"auth.unknown-key", "unknown credentials get 401", "host core 8.1", authUnknown},
		{"errors.unknown-run", "an unknown run gets 404 with an error document", "host core 9.1", unknownRunError},
		{"errors.unknown-path", "an unknown path gets 404 with an error document", "host core 9.1", unknownPathError},
		{"http.traceparent", "the response continues the trace of its request", "host core 2.0", traced},
	}
}

func discoveryPublic(_ context.Context, p *probe, f *findings) error {
	f.answered("GET "+wellKnown, p.discovery, 200, "application/json")
	if p.discovery.Header.Get("Cache-Control") == "" {
		f.add("Cache-Control is missing")
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
		f.add("protocolVersion is %q, not 1.MINOR", p.offer.ProtocolVersion)
	}
	return nil
}

// universal are the kinds that every host with envelopes must accept.
var universal = []string{"clarification.request", "schema.request", "schema.response", "error"}

func discoveryKinds(_ context.Context, p *probe, f *findings) error {
	kinds := p.offer.SupportedEnvelopes
	if len(kinds) == 0 {
		return skipped("the host advertises no envelope kinds")
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
		return skipped("the host sends no ETag, which is optional")
	}
	return unchanged(ctx, p.open, wellKnown, tag, f)
}

// unchanged expects a 304 without a body for a request with the document's ETag.
func unchanged(ctx context.Context, c *client.Client, path, tag string, f *findings) error {
	a, err := get(ctx, c, path, nil, "If-None-Match", tag)
	if err != nil {
		return err
	}
	if f.answered("with If-None-Match", a, 304, "") && len(a.Body) > 0 {
		f.add("HTTP 304 has a body")
	}
	return nil
}

func kindSchemas(ctx context.Context, p *probe, f *findings) error {
	if len(p.offer.SupportedEnvelopes) == 0 {
		return skipped("the host advertises no envelope kinds")
	}
	for _, kind := range p.offer.SupportedEnvelopes {
		a, err := get(ctx, p.open, "/schemas/envelopes/"+kind+".schema.json", nil)
		if err != nil {
			return err
		}
		if f.answered(kind, a, 200, "application/schema+json") && !json.Valid(a.Body) {
			f.add("%s: not JSON", kind)
		}
	}
	a, err := get(ctx, p.open, "/schemas/envelopes/conformance.unknown-kind.schema.json", nil)
	if err != nil {
		return err
	}
	f.refused("unknown kind", a, 404, fault.NotFound)
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
		f.add("openapi is %q, not 3.1 or later", doc.OpenAPI)
	}
	return nil
}

// authRequired: without a credential, the response must not reveal whether a run exists.
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
	for _, credential := range []string{"Bearer hk_unknown", "Basic bm9ib2R5"} {
		a, err := get(ctx, p.open, "/v1/runs/"+unknownRun(), nil, "Authorization", credential)
		if err != nil {
			return err
		}
		scheme, _, _ := strings.Cut(credential, " ")
		f.refused(scheme, a, 401, fault.Unauthenticated)
	}
	return nil
}

// needsKey skips a check if no credential is set.
func (p *probe) needsKey() error {
	if p.hasKey {
		return nil
	}
	return skipped("needs a credential")
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

// traced: the host continues the caller's trace in a span of its own.
func traced(ctx context.Context, p *probe, f *findings) error {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	a, err := get(ctx, p.open, wellKnown, nil, "Traceparent", "00-"+trace+"-00f067aa0ba902b7-01")
	if err != nil {
		return err
	}
	if got := a.Header.Get("Traceparent"); !strings.HasPrefix(got, "00-"+trace+"-") {
		f.add("traceparent of the response is %q, not of trace %s", got, trace)
	}
	return nil
}
