package admission

import (
	"context"
	"sync"
)

// Account counts the bytes that one request keeps in memory. The nil Account counts nothing. It
// is safe for concurrent use.
type Account struct {
	gate *Gate
	name string

	mu   sync.Mutex // guards held
	held int64
}

// capped limits bytes to the whole pool: an answer larger than that is sent alone.
func (a *Account) capped(n int64) int64 {
	if limit := a.gate.bytes.Limit(); limit > 0 {
		return min(n, limit)
	}
	return n
}

// Take adds n bytes. An error is meant for the caller: the host keeps too many bytes for
// others, or for this tenant.
func (a *Account) Take(n int64) error { return a.Resize(0, n) }

// Resize replaces from bytes, which the account has, by to bytes. An error is meant for the
// caller, and changes nothing.
func (a *Account) Resize(from, to int64) error {
	if a == nil || from == to {
		return nil
	}
	from, to = a.capped(from), a.capped(to)
	if !a.gate.bytes.Resize(a.name, from, to) {
		return a.gate.refuse(tooManyBytes)
	}
	a.add(to - from)
	return nil
}

// Wait adds n bytes as soon as there is room for them.
func (a *Account) Wait(ctx context.Context, n int64) error {
	if a == nil || n <= 0 {
		return nil
	}
	n = a.capped(n)
	if !a.gate.bytes.Wait(ctx, a.name, n) {
		return a.gate.refuse(tooManyBytes)
	}
	a.add(n)
	return nil
}

func (a *Account) add(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held += n
}

// Close returns all bytes. The account can be used again.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held > 0 {
		a.gate.bytes.Give(a.name, a.held)
	}
	a.held = 0
}
