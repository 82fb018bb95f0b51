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

// RedactTexts takes secrets out of what somebody outside says of a run, such as why it is
// cancelled, before that is kept anywhere. A run that uses its tenant's key has that for a
// secret, of which the redactor knows only while somebody works on the run: it is told
// here, also of a run that has ended. A run that is not there has no secrets of its own.
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
	// One that has ended meanwhile is not worked on any more either.
	if last, lerr := e.deps.Log.Last(ctx, r); lerr == nil && last.Kind == subject.End {
		done(wire.StatusCompleted)
	}
	if err != nil {
		return nil, fmt.Errorf("redact what is said of run %s: %w", runID, err)
	}
	out := make([]string, len(docs))
	for i, doc := range docs {
		if err := json.Unmarshal(doc, &out[i]); err != nil {
			return nil, fmt.Errorf("read what is said of run %s: %w", runID, err)
		}
	}
	return out, nil
}

// readRecord is a run's record; an empty one if there is none.
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
