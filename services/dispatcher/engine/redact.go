package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

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
