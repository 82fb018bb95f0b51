package eventlog

import (
	"context"

	"waybill.dev/waybill/internal/version"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/bundle"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// ExportRun returns a run's debug bundle (OpenWOP host contract §10.4).
func (s *Service) ExportRun(ctx context.Context, req *eventlogv1.ExportRunRequest) (*eventlogv1.ExportRunResponse, error) {
	key := store.Key{Tenant: req.GetTenant(), RunID: req.GetRunId()}
	row, err := s.current(ctx, key)
	if err != nil {
		return nil, err
	}
	run, err := project.Load(ctx, s.store, row)
	if err != nil {
		return nil, s.failure(key, err)
	}
	events, err := s.parsed(ctx, row, bundle.NewTrimmer(run.State))
	if err != nil {
		return nil, s.failure(key, err)
	}
	doc, err := bundle.Build(bundle.Input{
		State: run.State, Events: events, Host: bundle.Host{Name: version.Name, Version: version.Version},
		Now: s.clock(), MaxEvents: int(req.GetMaxEvents()), MaxBytes: int(req.GetMaxBytes()),
		Whole: req.GetWhole(),
	})
	if err != nil {
		return nil, err
	}
	return &eventlogv1.ExportRunResponse{Bundle: doc}, nil
}

// parsed reads all events of a run up to the row's head, without their content, which may exceed
// the memory.
func (s *Service) parsed(ctx context.Context, row store.Run, t *bundle.Trimmer) ([]wire.Event, error) {
	var out []wire.Event
	for len(out) <= row.Head {
		page, err := s.events(ctx, row.Key, len(out), maxEvents)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			events, err := wire.ParseEvents(append(append([]byte("["), e.GetDocument()...), ']'))
			if err != nil {
				return nil, err
			}
			if len(out) <= row.Head {
				out = append(out, t.Trim(events)...)
			}
		}
	}
	return out, nil
}
