package snapshot

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Snapshot is the state of a run at a head of its log.
type Snapshot struct {
	Run  subject.Run
	Head frame.Head
	// Record is the body of the run's first frame.
	Record []byte
	State  *runstate.State
}

var (
	// errRejected reports a snapshot that must not be used.
	errRejected = errors.New("snapshot rejected")
	// errTooLarge reports a snapshot that is not stored because of its size.
	errTooLarge = errors.New("snapshot too large")
)

// maxBytes limits a stored snapshot. A bucket accepts values of 4 MB.
const maxBytes = 2 << 20

// format is the version of the layout of stored snapshots.
const format = 1

// build identifies the layout and the fold of this build. Snapshots of other builds are rejected.
// It includes the fields of frame.Head, because an older snapshot has no values for new fields.
var build = fmt.Sprintf("%d/%d/%d/%#v", format, wire.EngineVersion, runstate.FoldVersion, frame.Head{}) //nolint:gochecknoglobals // a constant

// header is the beginning of a stored snapshot.
type header struct {
	Build string      `json:"build"`
	Run   subject.Run `json:"run"`
	Head  frame.Head  `json:"head"`
}

// Store stores one snapshot per run, compressed and encrypted: the files of a bucket keep replaced
// values for a while, and must not hold the content of erased runs. It is safe for concurrent use.
type Store struct {
	kv   kv.Store
	aead cipher.AEAD
}

// keyInfo separates the key of snapshots from other keys derived from the host's.
const keyInfo = "waybill snapshots v2"

// NewStore returns a store whose key is derived from the host's secret. Snapshots of a host with
// another secret are rejected.
func NewStore(s kv.Store, secret []byte) (*Store, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, keyInfo, 32)
	if err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("snapshots: %w", err)
	}
	return &Store{kv: s, aead: aead}, nil
}

// Key returns the key of a run's snapshot in its bucket, a digest because tenant names may contain characters that keys
// may not.
func Key(r subject.Run) string {
	sum := sha256.Sum256([]byte(r.Tenant + "\x00" + r.RunID))
	return hex.EncodeToString(sum[:])
}

// seal encrypts the content of the snapshot under a key of the bucket.
func (s *Store) seal(key string, content []byte) []byte {
	return s.aead.Seal(nil, nil, content, []byte(key)) //nolint:gosec // G407: the AEAD draws a random nonce
}

// put stores a snapshot. Errors: errTooLarge, kv.ErrUnavailable.
func (s *Store) put(ctx context.Context, v *Snapshot) error {
	at := Key(v.Run)
	content, err := v.encode(build)
	if err != nil {
		return err
	}
	value := s.seal(at, content)
	if len(value) > maxBytes {
		return fmt.Errorf("%w: %d bytes of run %s, limit is %d", errTooLarge, len(value), v.Run.RunID, maxBytes)
	}
	_, err = s.kv.Put(ctx, at, value)
	return err
}

// get returns the snapshot of a run. run.WorkflowID may be empty. Errors: kv.ErrNotFound,
// kv.ErrUnavailable, errRejected.
func (s *Store) get(ctx context.Context, r subject.Run) (*Snapshot, error) {
	at := Key(r)
	e, err := s.kv.Get(ctx, at)
	if errors.Is(err, kv.ErrDamaged) {
		return nil, fmt.Errorf("%w: %w", errRejected, err)
	}
	if err != nil {
		return nil, err
	}
	content, err := s.aead.Open(nil, nil, e.Value, []byte(at))
	if err != nil {
		return nil, fmt.Errorf("%w: it was changed, or written with another host key or by an earlier build", errRejected)
	}
	return decode(r, content)
}

// delete removes the snapshot of a run, if there is one. Errors: kv.ErrUnavailable.
func (s *Store) delete(ctx context.Context, r subject.Run) error {
	for {
		e, err := s.kv.Get(ctx, Key(r))
		if errors.Is(err, kv.ErrNotFound) {
			return nil
		}
		if err != nil && !errors.Is(err, kv.ErrDamaged) {
			return err
		}
		if err = s.kv.Delete(ctx, e.Key, e.Revision); !errors.Is(err, kv.ErrConflict) {
			return err
		}
	}
}

// encode returns the compressed snapshot of a build: a header, the record and the state. The first
// two are preceded by their lengths.
func (v *Snapshot) encode(build string) ([]byte, error) {
	h, err := json.Marshal(header{Build: build, Run: v.Run, Head: v.Head})
	if err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	st, err := v.State.Encode()
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, len(h)+len(v.Record)+len(st)+2*binary.MaxVarintLen64)
	for _, part := range [][]byte{h, v.Record} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	return s2.Encode(nil, append(b, st...)), nil
}

// decode decodes a run's encoded snapshot. Errors: errRejected.
func decode(r subject.Run, content []byte) (*Snapshot, error) {
	b, err := s2.Decode(nil, content)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRejected, err)
	}
	var (
		parts [2][]byte
		h     header
	)
	for i := range parts {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) { //nolint:gosec // G115: size is at most len(b)
			return nil, fmt.Errorf("%w: it ends too early", errRejected)
		}
		b = b[size:]
		parts[i], b = b[:n:n], b[n:]
	}
	if err := json.Unmarshal(parts[0], &h); err != nil {
		return nil, fmt.Errorf("%w: %w", errRejected, err)
	}
	if h.Build != build {
		return nil, fmt.Errorf("%w: it was written by another version, %q", errRejected, h.Build)
	}
	if h.Run.Tenant != r.Tenant || h.Run.RunID != r.RunID || h.Run.WorkflowID == "" {
		return nil, fmt.Errorf("%w: it is of another run", errRejected)
	}
	rec, err := wire.ParseRunRecord(parts[1])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRejected, err)
	}
	st, err := runstate.Decode(rec, b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRejected, err)
	}
	if st.Next != h.Head.Next || rec.Masking != "" {
		return nil, fmt.Errorf("%w: its state is not of its frame", errRejected)
	}
	return &Snapshot{Run: h.Run, Head: h.Head, Record: parts[1], State: st}, nil
}
