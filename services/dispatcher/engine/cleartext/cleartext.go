// Package cleartext stores the clear values of runs whose log contains masked values. Entries are
// encrypted with a key derived from the host's key, and erased when the run ends.
//
// An entry belongs to one frame, named by the run, the frame's first sequence and its writer. The
// entry is written before the frame, so every frame in the log has one. An entry whose frame was not
// appended is never read.
package cleartext

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

// ErrGone means that the clear values of a frame are erased, or were encrypted with another key.
var ErrGone = errors.New("the clear values of the run are gone, or were sealed with another key")

// Store is safe for concurrent use.
type Store struct {
	entries kv.Store
	aead    cipher.AEAD
}

// keyInfo separates this key from other keys derived from the host's key.
const keyInfo = "waybill sealed values v1"

// New returns a store with entries in a kv store, encrypted with a key derived from the host's secret.
func New(entries kv.Store, secret []byte) (*Store, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, keyInfo, 32)
	if err != nil {
		return nil, fmt.Errorf("cleartext: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("cleartext: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("cleartext: %w", err)
	}
	return &Store{entries: entries, aead: aead}, nil
}

// Put encrypts and stores the clear body of a frame.
func (s *Store) Put(ctx context.Context, r subject.Run, first int, writer string, clear []byte) error {
	key := entryKey(r, first, writer)
	if _, err := s.entries.Put(ctx, key, s.aead.Seal(nil, nil, clear, []byte(key))); err != nil { //nolint:gosec // G407: the AEAD draws a random nonce
		return fmt.Errorf("seal values of run %s: %w", r.RunID, err)
	}
	return nil
}

// Get returns the clear body of a frame. Errors: ErrGone, kv.ErrUnavailable.
func (s *Store) Get(ctx context.Context, r subject.Run, first int, writer string) ([]byte, error) {
	key := entryKey(r, first, writer)
	e, err := s.entries.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, fmt.Errorf("run %s at %d: %w", r.RunID, first, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("open values of run %s: %w", r.RunID, err)
	}
	clear, err := s.aead.Open(nil, nil, e.Value, []byte(key))
	if err != nil {
		return nil, fmt.Errorf("run %s at %d: %w", r.RunID, first, ErrGone)
	}
	return clear, nil
}

// Erase overwrites all entries of a run.
func (s *Store) Erase(ctx context.Context, r subject.Run) error {
	entries, err := kv.List(ctx, s.entries, keyPrefix(r))
	if err != nil {
		return fmt.Errorf("erase values of run %s: %w", r.RunID, err)
	}
	var errs []error
	for _, e := range entries {
		if len(e.Value) > 0 {
			_, err := s.entries.Put(ctx, e.Key, []byte(rand.Text())) // random text does not decrypt
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// keyPrefix identifies a run by a digest, because tenant names may contain characters that keys may not.
func keyPrefix(r subject.Run) string {
	sum := sha256.Sum256([]byte(r.Tenant + "\x00" + r.RunID))
	return hex.EncodeToString(sum[:]) + "."
}

// entryKey replaces the characters of a claim (frame.Claimed) that keys may not contain.
func entryKey(r subject.Run, first int, writer string) string {
	return keyPrefix(r) + strconv.Itoa(first) + "." + strings.NewReplacer("@", "=", "/", "=").Replace(writer)
}
