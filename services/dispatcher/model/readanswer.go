package model

import (
	"bytes"
	"context"
	"encoding/json"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Question is a text that is read as the answer to a node.
type Question struct {
	Text string
	// Kind is the kind that the node requests; empty if any envelope is an answer.
	Kind string
	// Accepts are the kinds of the node's contract.
	Accepts []string
}

// Reading holds the documents of a text, or why it has none.
type Reading struct {
	Documents []ReadDocument
	// Reason and Detail are those of a retry; empty if there are documents.
	Reason, Detail string
}

// ReadDocument is a document that the accept pipeline would get.
type ReadDocument struct {
	JSON     json.RawMessage
	Envelope bool
	Kind     string
	// Path is how it was found, and Offset where it begins in the text, in bytes.
	Path   string
	Offset int
}

// ReadAnswer finds the documents of a text as in the answer of a model. It calls no model, and does
// not pass the documents to the accept pipeline.
func (l *Loop) ReadAnswer(ctx context.Context, q Question) (Reading, error) {
	want, bad, err := l.expect(ctx, node.TypeCallPrompt, config{EnvelopeType: q.Kind})
	if err != nil {
		return Reading{}, err
	}
	if bad != nil {
		return Reading{}, fault.InvalidBody("/kind", "this host has no kind %q", q.Kind)
	}
	e := &emission{Loop: l, spec: spec{expected: want, contract: &workflow.EnvelopeContract{Accepts: q.Accepts}}}
	x := e.extract(answer{Result: provider.Result{Text: q.Text}})
	found, err := e.newReader(q.Text).candidates(ctx, x.documents)
	if f, ok := isFailure(err); ok {
		return Reading{Reason: f.reason, Detail: f.detail}, nil
	}
	if err != nil {
		return Reading{}, err
	}
	if len(found) == 0 {
		f := parseFailure(q.Text, x)
		return Reading{Reason: f.reason, Detail: f.detail}, nil
	}
	out := Reading{Documents: make([]ReadDocument, len(found))}
	for i, c := range found {
		out.Documents[i] = ReadDocument{
			JSON: c.doc.raw, Envelope: !bytes.Equal(c.body["payload"], c.doc.raw), Kind: c.kind,
			Path: c.doc.path, Offset: c.doc.offset,
		}
	}
	return out, nil
}
