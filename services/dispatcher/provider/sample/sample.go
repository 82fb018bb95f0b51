// Package sample is the built-in stand-in for a model. It makes an answer that satisfies the schema
// out of the words of the input, the same answer every time, and streams it in pieces.
//
// It chooses the enum value or the branch of a union whose words occur in the input. Texts are
// sentences of the input. Numbers are those of the input, if they fit.
//
// It does not search: for not, if/then/else and dependent members it leaves out what is optional.
// The accept pipeline checks the answer like any model's.
package sample

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// The provider and its models. Three of them show what goes wrong with models: no schema is enforced
// on Plain, Stumbles leaves a member out of its first answer, and Strays always answers with a file.
const (
	ID       = "sample"
	Model    = "sample-1"
	Plain    = "sample-plain"
	Stumbles = "sample-stumbles"
	Strays   = "sample-strays"
)

var models = []string{Model, Plain, Stumbles, Strays}

// Models are the names of the models.
func Models() []string { return slices.Clone(models) }

// Provider is the stand-in. It is safe for concurrent use.
type Provider struct{ delay time.Duration }

// New makes the stand-in; delay is the pause before each piece, 0 for none.
func New(delay time.Duration) *Provider { return &Provider{delay: delay} }

// ID names the provider.
func (p *Provider) ID() string { return ID }

// Call answers a request. A schema without documents, or with very large ones only, is
// CodeSchemaInvalid.
func (p *Provider) Call(ctx context.Context, req provider.Request, emit func(provider.Delta) error) (provider.Result, error) {
	if err := ctx.Err(); err != nil {
		return provider.Result{}, err
	}
	if err := req.Validate(); err != nil {
		return provider.Result{}, err
	}
	if !slices.Contains(models, req.Model) {
		return provider.Result{}, &provider.Error{
			Code:    provider.CodeModelNotSupported,
			Message: "the sample provider has the models " + strings.Join(models, ", "),
		}
	}
	text, err := answer(req)
	if err != nil {
		return provider.Result{}, err
	}
	switch req.Model {
	case Stumbles:
		text = stumble(text, req)
	case Strays:
		text = `{"type":"media.file","payload":{"base64":"RGVhciBjdXN0b21lcg==","bytes":13,"mimeType":"text/plain","name":"letter.txt"}}`
	}
	pieces, r := limit(text, req)
	c := provider.NewTokenCollector(req.Model, emit)
	for _, piece := range pieces {
		if err := c.AddAfter(ctx, p.delay, provider.Delta{Text: piece}); err != nil {
			return provider.Result{}, err
		}
	}
	return c.Finish(r, provider.FinishReason(r.Stop))
}

// stumble leaves the last member, by name, out of an object, unless the request says that such an
// answer was not accepted.
func stumble(answer string, req provider.Request) string {
	corrected := slices.ContainsFunc(req.Messages, func(m provider.Message) bool { return strings.Contains(textOf(m), "was not accepted") })
	members := strictjson.Object([]byte(answer))
	if corrected || len(members) == 0 {
		return answer
	}
	delete(members, slices.Max(slices.Collect(maps.Keys(members))))
	return text(members)
}

// limit cuts the answer at the first stop sequence, and at the budget.
func limit(text string, req provider.Request) ([]string, provider.Result) {
	r := provider.Result{Stop: provider.StopClean, RawStop: "stop"}
	for _, stop := range req.Stop {
		if i := strings.Index(text, stop); stop != "" && i >= 0 {
			text = text[:i]
			r.Stop, r.RawStop = provider.StopSequence, "stop_sequence"
		}
	}
	pieces := split(text)
	if req.MaxTokens > 0 && len(pieces) > req.MaxTokens {
		pieces = pieces[:req.MaxTokens]
		r.Stop, r.RawStop = provider.StopTruncated, "length"
	}
	in := inputTokens(req)
	r.Usage = provider.Usage{InputTokens: in, OutputTokens: len(pieces), TotalTokens: in + len(pieces), Known: true}
	return pieces, r
}

// answer returns the whole text: a document for a schema, else a sentence.
func answer(req provider.Request) (string, error) {
	source := newSource(subjectOf(req))
	if len(req.Schema) == 0 {
		return "This is the built-in sample, not a model. You wrote: " + strconv.Quote(source.sentences[0]), nil
	}
	root, err := compile(req.Schema)
	if err != nil {
		return "", unfit(err.Error())
	}
	g := generator{source: source, fuel: maxFuel}
	if err := g.value(place{}, root); err != nil {
		return "", err
	}
	if g.out.Len() > provider.MaxAnswerBytes {
		return "", tooLong()
	}
	return g.out.String(), nil
}

// compile reads a schema within the limits of package schema.
func compile(raw json.RawMessage) (*jsonschema.Schema, error) {
	compiled, err := schema.Compile("answer", raw)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(compiled.Document()))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(schema.Pattern)
	if err := c.AddResource("schema:///answer", doc); err != nil {
		return nil, err
	}
	return c.Compile("schema:///answer")
}

func unfit(message string) *provider.Error {
	return &provider.Error{Code: provider.CodeSchemaInvalid, Message: "the sample provider: " + message}
}

func tooLong() *provider.Error {
	return &provider.Error{
		Code:    provider.CodeContentTooLong,
		Message: "the sample provider: the schema asks for an answer longer than 9 MiB",
	}
}
