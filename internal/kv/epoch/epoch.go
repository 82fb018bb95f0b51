// Package epoch stores records that can be cleared in one step.
//
// A space counts its epochs, and the key of every record includes the epoch. Clearing all records
// starts the next epoch: one write, which every process sees at its next access. Records of past
// epochs remain until the store expires them, so it should have a TTL.
package epoch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"waybill.dev/waybill/internal/kv"
)

// Space is a family of records. The zero value is unusable.
type Space struct {
	store kv.Store
	name  string
}

// New returns a space; names may be any text.
func New(store kv.Store, names ...string) Space {
	hashed := make([]string, len(names))
	for i, n := range names {
		hashed[i] = Token(n)
	}
	return Space{store: store, name: strings.Join(hashed, ".")}
}

// Token encodes any text as a part of a key.
func Token(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func (s Space) counter() string { return s.name + ".epoch" }

// current reads the epoch's number and the revision of its record.
func (s Space) current(ctx context.Context) (n, revision uint64, err error) {
	e, err := s.store.Get(ctx, s.counter())
	if errors.Is(err, kv.ErrNotFound) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	if n, err = strconv.ParseUint(string(e.Value), 10, 64); err != nil {
		return 0, 0, fmt.Errorf("epoch of %s: %w", s.name, err)
	}
	return n, e.Revision, nil
}

// Now returns the records of the current epoch. Errors: kv.ErrUnavailable.
func (s Space) Now(ctx context.Context) (Records, error) {
	n, _, err := s.current(ctx)
	return Records{store: s.store, prefix: s.name + ".in." + strconv.FormatUint(n, 10) + "."}, err
}

// Clear starts the next epoch. Errors: kv.ErrUnavailable.
func (s Space) Clear(ctx context.Context) error {
	for {
		n, revision, err := s.current(ctx)
		if err != nil {
			return err
		}
		_, err = s.store.Update(ctx, s.counter(), strconv.AppendUint(nil, n+1, 10), revision)
		if errors.Is(err, kv.ErrConflict) {
			continue // another process started an epoch; ours must start after our caller's call
		}
		return err
	}
}

// Records are the records of one epoch. Keys consist of letters, digits, "-", "_" and ".", which
// separates their parts.
type Records struct {
	store  kv.Store
	prefix string
}

// Key returns the full key of a record, unique over epochs.
func (r Records) Key(key string) string { return r.prefix + key }

// Get returns a record's value and revision; nil and 0 if there is none.
func (r Records) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	e, err := r.store.Get(ctx, r.Key(key))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, 0, nil
	}
	return e.Value, e.Revision, err
}

// Put writes a record unconditionally.
func (r Records) Put(ctx context.Context, key string, value []byte) error {
	_, err := r.store.Put(ctx, r.Key(key), value)
	return err
}

// Update writes a record if it is at revision; 0 means that it does not exist. Errors: kv.ErrConflict,
// kv.ErrUnavailable.
func (r Records) Update(ctx context.Context, key string, value []byte, revision uint64) error {
	_, err := r.store.Update(ctx, r.Key(key), value, revision)
	return err
}

// Change updates a record with the result of change, whose argument is nil if there is no record.
// change is called again after a conflict; its errors end the update.
func (r Records) Change(ctx context.Context, key string, change func(value []byte) ([]byte, error)) error {
	for {
		value, revision, err := r.Get(ctx, key)
		if err != nil {
			return err
		}
		if value, err = change(value); err != nil {
			return err
		}
		if err = r.Update(ctx, key, value, revision); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
}

// List returns the values of the records with prefix (ending in "."), sorted by key.
func (r Records) List(ctx context.Context, prefix string) ([][]byte, error) {
	entries, err := kv.List(ctx, r.store, r.Key(prefix))
	if err != nil {
		return nil, err
	}
	values := make([][]byte, 0, len(entries))
	for _, e := range entries {
		values = append(values, e.Value)
	}
	return values, nil
}
