package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// maxRedacted limits the documents of one redactor request; the redactor accepts 1000.
const maxRedacted = 512

// redactEvents redacts events that are not clean. It returns the number of the first changed event,
// counted from 1; 0 means that none changed.
func (e *Executor) redactEvents(
	ctx context.Context, r subject.Run, registered bool, events []wire.Event, clean []bool,
) (first int, err error) {
	var (
		docs  [][]byte
		index []int
	)
	for i, event := range events {
		if clean[i] || !strictjson.MayHold(event.Payload, wire.MinSecretBytes) {
			continue
		}
		docs, index = append(docs, event.Payload), append(index, i)
	}
	if len(docs) == 0 {
		return 0, nil
	}
	for part := range slices.Chunk(index, maxRedacted) {
		out, changed, err := e.deps.Redactor.Redact(ctx, r.Tenant, r.RunID, registered, docs[:len(part)])
		if err != nil {
			return 0, fmt.Errorf("redact events of run %s: %w", r.RunID, err)
		}
		if docs = docs[len(part):]; !changed {
			continue
		}
		for k, i := range part {
			if first == 0 && !bytes.Equal(events[i].Payload, out[k]) {
				first = i + 1
			}
			events[i].Payload = out[k]
		}
	}
	return first, nil
}

// redactNote returns the JSON of a frame's note, without secrets.
func (e *Executor) redactNote(ctx context.Context, r subject.Run, registered bool, n *wire.Note) (string, error) {
	if n.IDsOnly() {
		return n.JSON(), nil
	}
	out, _, err := e.deps.Redactor.Redact(ctx, r.Tenant, r.RunID, registered, [][]byte{[]byte(n.JSON())})
	if err != nil {
		return "", fmt.Errorf("redact a note of run %s: %w", r.RunID, err)
	}
	return string(out[0]), nil
}

// RedactTexts redacts texts about a run, such as the reason of a cancellation, before they are
// stored. It registers the run's own secrets for that, because the redactor knows them only while
// the run is executed. That includes a run that has ended. A missing run has no secrets of its own.
func (e *Executor) RedactTexts(ctx context.Context, tenant, runID string, texts []string) ([]string, error) {
	r := subject.Run{Tenant: tenant, RunID: runID}
	rec, err := e.readRecord(ctx, r)
	if err != nil {
		return nil, err
	}
	done, err := e.openSecrets(ctx, rec)
	if err != nil {
		return nil, err
	}
	docs := make([][]byte, len(texts))
	for i, text := range texts {
		docs[i] = wire.AppendString(nil, text)
	}
	docs, _, err = e.deps.Redactor.Redact(ctx, tenant, runID, rec.CredentialRef != "", docs)
	// A run that ended during the call is not executed any more either.
	if last, lerr := e.deps.Log.Last(ctx, r); lerr == nil && last.Kind == subject.End {
		done(wire.StatusCompleted)
	}
	if err != nil {
		return nil, fmt.Errorf("redact texts about run %s: %w", runID, err)
	}
	out := make([]string, len(docs))
	for i, doc := range docs {
		if err := json.Unmarshal(doc, &out[i]); err != nil {
			return nil, fmt.Errorf("read redacted texts about run %s: %w", runID, err)
		}
	}
	return out, nil
}

// readRecord returns a run's record; an empty one if the run is missing.
func (e *Executor) readRecord(ctx context.Context, r subject.Run) (*wire.RunRecord, error) {
	first, err := e.deps.Log.First(ctx, r)
	if errors.Is(err, runlog.ErrNotFound) {
		return &wire.RunRecord{}, nil
	}
	if err != nil {
		return nil, err
	}
	return first.Record()
}
