package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// Bundles exports debug bundles; see retention.Bundles.
type Bundles struct {
	EventLog eventlogv1.EventLogClient
	Redactor Redactor
}

// partBytes is the size of a bundle from which on its events are redacted in parts of this size: the
// redactor reads 16 MiB.
const partBytes = 8 << 20

// Whole returns the bundle of a run with all its events. It is redacted once more, with the secrets of
// today, because it leaves the host (OpenWOP host contract §10.4).
func (b Bundles) Whole(ctx context.Context, run subject.Run) ([]byte, error) {
	res, err := b.EventLog.ExportRun(ctx, &eventlogv1.ExportRunRequest{Tenant: run.Tenant, RunId: run.RunID, Whole: true})
	if err != nil {
		return nil, err
	}
	if doc := res.GetBundle(); len(doc) > partBytes {
		return b.redactInParts(ctx, run, doc)
	}
	return b.redact(ctx, run, res.GetBundle())
}

func (b Bundles) redact(ctx context.Context, run subject.Run, doc []byte) ([]byte, error) {
	docs, _, err := b.Redactor.Redact(ctx, run.Tenant, run.RunID, false, [][]byte{doc})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case fault.CodeOf(err) == fault.PayloadTooLarge:
		return nil, err
	case err != nil:
		return nil, fault.New(fault.ServiceUnavailable, "the redactor is unavailable: the run was not archived; try again").After(time.Second).Wrap(err)
	}
	return docs[0], nil
}

// redactInParts redacts a large bundle: its events in parts, and everything else. The redactor treats
// each text of a document on its own, so the result is that of the whole.
func (b Bundles) redactInParts(ctx context.Context, run subject.Run, doc []byte) ([]byte, error) {
	parts, err := split(doc)
	if err != nil {
		return nil, fmt.Errorf("debug bundle of run %s: %w", run.RunID, err)
	}
	for i, p := range parts.events {
		if parts.events[i], err = b.redact(ctx, run, p); err != nil {
			return nil, err
		}
	}
	if parts.rest, err = b.redact(ctx, run, parts.rest); err != nil {
		return nil, err
	}
	return parts.join()
}

// bundleParts are a bundle without its events, and its events as arrays.
type bundleParts struct {
	rest   []byte
	events [][]byte
}

// split splits a bundle.
func split(doc []byte) (p bundleParts, err error) {
	var events []json.RawMessage
	p.rest, err = replaceEvents(doc, func(raw json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage("[]"), json.Unmarshal(raw, &events)
	})
	part := []byte("[")
	for _, e := range events {
		if len(part) > 1 {
			if len(part)+len(e) > partBytes {
				p.events, part = append(p.events, append(part, ']')), []byte("[")
			} else {
				part = append(part, ',')
			}
		}
		part = append(part, e...)
	}
	p.events = append(p.events, append(part, ']'))
	return p, err
}

// join is the reverse of split.
func (p bundleParts) join() ([]byte, error) {
	var inner [][]byte
	for _, part := range p.events {
		inner = append(inner, bytes.TrimSuffix(bytes.TrimPrefix(bytes.TrimSpace(part), []byte("[")), []byte("]")))
	}
	all := append(append([]byte("["), bytes.Join(inner, []byte(","))...), ']')
	return replaceEvents(p.rest, func(json.RawMessage) (json.RawMessage, error) { return all, nil })
}

// replaceEvents replaces the member events of an object and keeps the order of its members.
func replaceEvents(doc []byte, by func(json.RawMessage) (json.RawMessage, error)) ([]byte, error) {
	in := json.NewDecoder(bytes.NewReader(doc))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	out := []byte{'{'}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return nil, err
		}
		if name == "events" {
			if value, err = by(value); err != nil {
				return nil, err
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, fmt.Sprintf("%q:", name)...), value...)
	}
	return append(out, '}'), nil
}
