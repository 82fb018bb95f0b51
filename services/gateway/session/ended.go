package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/protocol/fault"
)

// ended has the sessions that ended before their time. It is safe for concurrent use.
type ended struct {
	store kv.Store
	clock func() time.Time

	mu    sync.Mutex // guards known
	known *lru.Cache[string, verdict]
}

// verdict is whether a session has ended, as of a time.
type verdict struct {
	over bool
	at   time.Time
}

const (
	// maxVerdicts limits the sessions whose verdict is kept in memory.
	maxVerdicts = 10_000
	// verdictFor is how long a session counts as open without a look at the store: how long a
	// session that ended at another gateway may go on here.
	verdictFor = time.Second
)

// idOf returns the id of the session of a cookie. It is no secret.
func idOf(cookie string) string {
	sum := sha256.Sum256([]byte("waybill-session-id\x00" + cookie))
	return hex.EncodeToString(sum[:])
}

func endedKey(id string) string { return "session." + id }

// has reports whether a session has ended.
func (e *ended) has(ctx context.Context, id string) (bool, error) {
	now := e.clock()
	e.mu.Lock()
	v, ok := e.known.Get(id)
	e.mu.Unlock()
	if ok && (v.over || now.Sub(v.at) < verdictFor) {
		return v.over, nil
	}
	_, err := e.store.Get(ctx, endedKey(id))
	switch {
	case errors.Is(err, kv.ErrNotFound):
		e.remember(id, verdict{at: now})
		return false, nil
	case err != nil:
		return false, errUnknown(err)
	}
	e.remember(id, verdict{over: true})
	return true, nil
}

// add ends a session, here immediately and at other gateways within verdictFor.
func (e *ended) add(ctx context.Context, id string) error {
	e.remember(id, verdict{over: true})
	if _, err := e.store.Put(ctx, endedKey(id), []byte("{}")); err != nil {
		return errUnknown(err)
	}
	return nil
}

func (e *ended) remember(id string, v verdict) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known.Put(id, v, 1)
}

func errUnknown(err error) error {
	return fault.New(fault.ServiceUnavailable, "console sessions are unavailable; retry").After(time.Second).Wrap(err)
}
