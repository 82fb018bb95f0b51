package host

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/host/natsstore"
)

// lazyBlobs is a store of assets that is opened while the services already serve. Its calls time out
// before those of its callers.
type lazyBlobs struct{ store atomic.Pointer[blob.Store] }

func (l *lazyBlobs) open(s blob.Store) { l.store.Store(&s) }

var errNoStore = errors.New("the store of assets is not open yet")

// Put stores a blob; see blob.Store.
func (l *lazyBlobs) Put(ctx context.Context, name string, b blob.Blob) error {
	s := l.store.Load()
	if s == nil {
		return errNoStore
	}
	ctx, cancel := withPatience(ctx)
	defer cancel()
	return (*s).Put(ctx, name, b)
}

// Get returns a blob; see blob.Store.
func (l *lazyBlobs) Get(ctx context.Context, name string) (blob.Blob, error) {
	s := l.store.Load()
	if s == nil {
		return blob.Blob{}, errNoStore
	}
	ctx, cancel := withPatience(ctx)
	defer cancel()
	return (*s).Get(ctx, name)
}

// Erase removes a blob; see blob.Store.
func (l *lazyBlobs) Erase(ctx context.Context, name string) error {
	s := l.store.Load()
	if s == nil {
		return errNoStore
	}
	ctx, cancel := withPatience(ctx)
	defer cancel()
	return (*s).Erase(ctx, name)
}

// withPatience limits a call to a store, so that its caller gets the reason and not only a timeout.
func withPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	d := natsstore.Patience
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)*3/4)
	}
	return context.WithTimeout(ctx, d)
}
