package ingest_test

import (
	"context"
	"sync"

	"waybill.dev/waybill/services/eventlog/ingest"
	"waybill.dev/waybill/services/eventlog/store"
)

// faultyStore wraps a store and fails on demand.
type faultyStore struct {
	ingest.Store
	mu       sync.Mutex
	applies  []error // for the next calls
	runs     []error
	rebuilds []error
	applied  []store.Batch
}

func pop(list *[]error) error {
	if len(*list) == 0 {
		return nil
	}
	err := (*list)[0]
	*list = (*list)[1:]
	return err
}

func (f *faultyStore) fail(list *[]error, errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*list = append(*list, errs...)
}

func (f *faultyStore) take(list *[]error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return pop(list)
}

func (f *faultyStore) Apply(ctx context.Context, b store.Batch) error {
	if err := f.take(&f.applies); err != nil {
		return err
	}
	err := f.Store.Apply(ctx, b)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied = append(f.applied, b)
	return err
}

func (f *faultyStore) Run(ctx context.Context, key store.Key) (store.Run, error) {
	if err := f.take(&f.runs); err != nil {
		return store.Run{}, err
	}
	return f.Store.Run(ctx, key)
}

func (f *faultyStore) Rebuild(ctx context.Context) error {
	if err := f.take(&f.rebuilds); err != nil {
		return err
	}
	return f.Store.Rebuild(ctx)
}

// batches are the applied batches so far.
func (f *faultyStore) batches() []store.Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]store.Batch(nil), f.applied...)
}
