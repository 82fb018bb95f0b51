package eventlog

import (
	"context"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/eventlog/fold"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// ViewRun returns a run's folded view. The view of the whole log is cached and extended; one as of
// an earlier event is folded for the call.
func (s *Service) ViewRun(ctx context.Context, req *eventlogv1.ViewRunRequest) (*eventlogv1.ViewRunResponse, error) {
	key := store.Key{Tenant: req.GetTenant(), RunID: req.GetRunId()}
	row, err := s.current(ctx, key)
	if err != nil {
		return nil, err
	}
	var doc []byte
	if at := int(req.GetAt()); req.At != nil && at < row.Head {
		f := fold.New(row.RunID, row.CreatedAt)
		if err = extend(ctx, s.store, key, f, at); err == nil {
			doc = strictjson.RenderPlain(f.View())
		}
	} else {
		doc, err = s.views.folded(ctx, row)
	}
	if err != nil {
		return nil, s.failure(key, err)
	}
	return &eventlogv1.ViewRunResponse{View: doc}, nil
}

// folded returns the run's folded view as of the row, or later.
func (v *views) folded(ctx context.Context, row store.Run) (doc []byte, err error) {
	werr := v.with(ctx, row, func(w *view) {
		if w.fold == nil {
			w.fold = fold.New(row.RunID, row.CreatedAt)
		}
		if err = extend(ctx, v.frames, row.Key, w.fold, w.snap.head); err != nil {
			w.fold = nil // it may be partly extended
			return
		}
		doc = strictjson.RenderPlain(w.fold.View())
		w.folded = len(doc)
		v.cost(row.Key, w)
	})
	if werr != nil {
		return nil, werr
	}
	return doc, err
}

// extend adds stored events up to and including event head.
func extend(ctx context.Context, from project.Frames, key store.Key, f *fold.Fold, head int) error {
	return eachEvent(ctx, from, key, f.Next(), head, f.Add)
}
