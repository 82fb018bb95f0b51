// Package vault keeps the clear values of runs whose log holds masked ones, sealed with
// a key that derives from the host's, until the run ends.
//
// An entry belongs to a frame: the run, the sequence that the frame begins with, and
// the writer that the frame names. It is written before the frame, so that a frame in
// the log always has one; one of a frame that never came to be is nobody's.
package vault

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/subject"
)

// ErrGone says that the clear values of a frame are not to be had any more.
var ErrGone = errors.New("the clear values of the run are gone, or were sealed with another key")

// Vault is safe for concurrent use.
type Vault struct {
	store kv.Store
	aead  cipher.AEAD
}

// info separates this key from others that derive from the host's.
const info = "waybill sealed values v1"

// New makes a vault of a host whose secret it is given.
func New(store kv.Store, secret []byte) (*Vault, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, info, 32)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return &Vault{store: store, aead: aead}, nil
}

// Put seals the clear body of a frame.
func (v *Vault) Put(ctx context.Context, r subject.Run, first int, writer string, clear []byte) error {
	place := key(r, first, writer)
	if _, err := v.store.Put(ctx, place, v.aead.Seal(nil, nil, clear, []byte(place))); err != nil { //nolint:gosec // G407: the nonce is random, the AEAD makes it
		return fmt.Errorf("seal values of run %s: %w", r.RunID, err)
	}
	return nil
}

// Get opens the clear body of a frame. Errors: ErrGone, kv.ErrUnavailable.
func (v *Vault) Get(ctx context.Context, r subject.Run, first int, writer string) ([]byte, error) {
	place := key(r, first, writer)
	e, err := v.store.Get(ctx, place)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("run %s at %d: %w", r.RunID, first, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("open values of run %s: %w", r.RunID, err)
	}
	clear, err := v.aead.Open(nil, nil, e.Value, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("run %s at %d: %w", r.RunID, first, ErrGone)
	}
	return clear, nil
}

// Erase overwrites what is kept of a run.
func (v *Vault) Erase(ctx context.Context, r subject.Run) error {
	all, err := kv.List(ctx, v.store, prefix(r))
	if err != nil {
		return fmt.Errorf("erase values of run %s: %w", r.RunID, err)
	}
	var errs []error
	for _, e := range all {
		if len(e.Value) > 0 {
			_, err := v.store.Put(ctx, e.Key, []byte(rand.Text())) // nothing that opens
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// prefix names a run by a digest: names of tenants may have signs that keys have not.
func prefix(r subject.Run) string {
	sum := sha256.Sum256([]byte(r.Tenant + "\x00" + r.RunID))
	return hex.EncodeToString(sum[:]) + "."
}

// key replaces the characters of a claim (frame.Claimed) that a key cannot have.
func key(r subject.Run, first int, writer string) string {
	return prefix(r) + strconv.Itoa(first) + "." + strings.NewReplacer("@", "=", "/", "=").Replace(writer)
}
