// Package sample is the built-in stand-in for a model. It is no model: it makes
// an answer that satisfies the asked schema out of the words of the input, the
// same answer every time, and streams it in pieces. It is called "sample"
// wherever it appears, so that nobody mistakes it for one.
//
// The way of an answer:
//
//	request -> subject (what the user wrote) -> generator walks the schema -> JSON -> pieces
//
// Of alternatives it takes the one whose words occur in the subject; strings it
// fills with sentences of the subject. What the words leave open it decides by a
// hash of the request.
//
// It follows JSON Schema as far as a document can be made without search:
// references, allOf, anyOf, oneOf, const, enum, and the limits of objects,
// arrays, strings and numbers. For not, if/then/else and dependent members it
// leaves out what is optional and hopes for the best; the accept pipeline checks
// the answer like any model's.
package sample

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// ID names the provider, Model its model. The others show what goes wrong with models:
// Plain is one that no schema is enforced on, Stumbles leaves a member out until it is
// told that its answer was not accepted, and Strays answers with a file whatever it was
// asked for.
const (
	ID       = "sample"
	Model    = "sample-1"
	Plain    = "sample-plain"
	Stumbles = "sample-stumbles"
	Strays   = "sample-strays"
)

var models = []string{Model, Plain, Stumbles, Strays}

// Provider is the stand-in. It is safe for concurrent use.
type Provider struct{ delay time.Duration }

// New makes the stand-in; delay is the pause before each piece, 0 for none.
func New(delay time.Duration) *Provider { return &Provider{delay: delay} }

// ID names the provider.
func (p *Provider) ID() string { return ID }

// Call answers a request. A schema that no document can satisfy, or whose
// smallest document is very large, is CodeSchemaInvalid.
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
	switch {
	case req.Model == Stumbles && !corrected(req):
		text = stumble(text)
	case req.Model == Strays:
		text = strayed
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

// limit cuts the answer where a stop sequence or the budget ends it, whichever
// comes first, and tells how it ended.
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

// answer is the whole text: a document for a schema, else a sentence.
func answer(req provider.Request) (string, error) {
	subject := subjectOf(req)
	if len(req.Schema) == 0 {
		return prose(subject), nil
	}
	root, err := decode(req.Schema)
	if err != nil {
		return "", unfit("the response schema is nested too deeply")
	}
	g := newGenerator(root, subject, hashOf(req))
	v, err := g.value(root, place{})
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	encode(&out, v)
	if out.Len() > provider.MaxAnswerBytes {
		return "", tooLong()
	}
	return out.String(), nil
}

// prose is the answer to a request without a schema.
func prose(subject string) string {
	const most = 160
	if subject == "" {
		return "This is the built-in sample, not a model. You wrote nothing."
	}
	return "This is the built-in sample, not a model. You wrote: " + strconv.Quote(newSource(subject).excerpt(0, most))
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
