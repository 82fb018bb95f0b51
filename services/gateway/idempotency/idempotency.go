// Package idempotency returns the first answer to a repeated request (OpenWOP host contract
// §2.1).
//
// Creating a run needs no record on success: the run's id derives from the key, and the log
// detects the repetition. Other requests keep a record: pending under a lease while the
// request runs, then its final answer.
package idempotency

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/fault"
)

// MaxKeyLength is the maximum length of an Idempotency-Key, in bytes.
const MaxKeyLength = 255

// lease is how long a pending request blocks repetitions. It is longer than any request may
// take. Afterwards a repetition takes over.
const lease = 60 * time.Second

// Keeper stores records. It is safe for concurrent use.
type Keeper struct {
	store kv.Store
	clock func() time.Time
}

// New makes a keeper over a store.
func New(store kv.Store, clock func() time.Time) *Keeper { return &Keeper{store: store, clock: clock} }

// Request identifies a request by tenant, operation and key, and its content by digest.
type Request struct {
	Tenant, Operation, Key string
	// Digest is the digest of the canonical request; see Digest.
	Digest string
}

// CheckKey validates an Idempotency-Key.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKeyLength {
		return fault.InvalidHeader("Idempotency-Key", "want 1 to %d characters, got %d", MaxKeyLength, len(key))
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return fault.InvalidHeader("Idempotency-Key", "want printable ASCII without white space")
		}
	}
	return nil
}

// Digest returns the digest of a request's canonical JSON. Member order and number spelling
// do not change it; anything else does (OpenWOP host contract §2.1).
func Digest(doc []byte) (string, error) {
	form, err := canonical(doc)
	if err != nil {
		return "", fault.New(fault.ValidationError, "the request has no canonical form: %s", "a number or text in it cannot be represented").Wrap(err)
	}
	sum := sha256.Sum256(form)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// record is the stored form.
type record struct {
	Digest string `json:"digest"`
	// Owner is set while the request is pending, until Expires (Unix milliseconds).
	Owner   string `json:"owner,omitempty"`
	Expires int64  `json:"expires,omitempty"`
	// Response is the encoded answer; Fault is the error envelope.
	Response []byte          `json:"response,omitempty"`
	Fault    json.RawMessage `json:"fault,omitempty"`
}

// Answer is a recorded answer: a message or an error.
type Answer struct {
	Response []byte
	Err      *fault.Error
}

// storeKey hashes the key, because a caller's key may contain any character.
func (r Request) storeKey() string {
	sum := sha256.Sum256([]byte(r.Tenant + ":" + r.Operation + ":" + r.Key))
	return "idem." + hex.EncodeToString(sum[:])
}

// Recorded returns the final answer to a request; nil if there is none.
func (k *Keeper) Recorded(ctx context.Context, r Request) (*Answer, error) {
	rec, _, err := k.load(ctx, r)
	if err != nil || rec == nil || rec.pending() {
		return nil, err
	}
	if rec.Digest != r.Digest {
		return nil, mismatch()
	}
	return rec.answer()
}

func (r *record) pending() bool { return r.Owner != "" }

func (r *record) answer() (*Answer, error) {
	if r.Fault == nil {
		return &Answer{Response: r.Response}, nil
	}
	e, err := fault.ParseEnvelope(r.Fault)
	if err != nil {
		return nil, fmt.Errorf("read idempotency record: %w", err)
	}
	return &Answer{Err: e}, nil
}

func mismatch() error {
	return fault.New(fault.IdempotencyKeyMismatch, "this Idempotency-Key was used with another request; use a new key for a new request")
}

func (k *Keeper) load(ctx context.Context, r Request) (*record, uint64, error) {
	e, err := k.store.Get(ctx, r.storeKey())
	if errors.Is(err, kv.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil && !errors.Is(err, kv.ErrDamaged) {
		return nil, 0, unavailable(err)
	}
	var rec record
	if err := errors.Join(err, json.Unmarshal(e.Value, &rec)); err != nil {
		return nil, 0, fault.New(fault.LogDamaged, "the recorded answer to this Idempotency-Key is damaged: "+
			"check whether the first request had an effect, and use a new key for another").Wrap(err)
	}
	return &rec, e.Revision, nil
}

func unavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "idempotency records are unavailable; the request had no effect, retry").After(time.Second).Wrap(err)
}

// Do executes a request once. do returns the encoded answer; replayed reports that the
// answer is the recorded one. Answers that a retry may change are not recorded.
func (k *Keeper) Do(ctx context.Context, r Request, do func() ([]byte, error)) (response []byte, replayed bool, err error) {
	rec, revision, err := k.load(ctx, r)
	if err != nil {
		return nil, false, err
	}
	if rec != nil {
		switch {
		case rec.Digest != "" && rec.Digest != r.Digest: // takes precedence over in-flight
			return nil, false, mismatch()
		case !rec.pending():
			a, err := rec.answer()
			if err != nil {
				return nil, false, err
			}
			return a.Response, true, errOrNil(a.Err)
		case k.clock().UnixMilli() < rec.Expires:
			return nil, false, inFlight()
		}
	}
	revision, err = k.claim(ctx, r, revision)
	if err != nil {
		return nil, false, err
	}
	response, err = do()
	k.finish(context.WithoutCancel(ctx), r, revision, response, err)
	return response, false, err
}

func errOrNil(e *fault.Error) error {
	if e == nil {
		return nil
	}
	return e
}

func inFlight() error {
	return fault.New(fault.IdempotencyInFlight, "the first request with this Idempotency-Key is still running").After(time.Second)
}

func (k *Keeper) claim(ctx context.Context, r Request, revision uint64) (uint64, error) {
	value, err := json.Marshal(record{Digest: r.Digest, Owner: rand.Text(), Expires: k.clock().Add(lease).UnixMilli()})
	if err != nil {
		return 0, fmt.Errorf("render idempotency record: %w", err)
	}
	rev, err := k.store.Update(ctx, r.storeKey(), value, revision)
	if errors.Is(err, kv.ErrConflict) {
		return 0, inFlight()
	}
	if err != nil {
		return 0, unavailable(err)
	}
	return rev, nil
}

// finishTimeout limits the write of an answer, which continues after the caller has gone.
const finishTimeout = 5 * time.Second

// finish records a final answer, or releases the key for a retry. If the write fails, the
// lease expires.
func (k *Keeper) finish(ctx context.Context, r Request, revision uint64, response []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	rec := record{Digest: r.Digest, Response: response}
	if err != nil {
		e, ok := fault.As(err)
		if !ok || !Final(e.Code) {
			// Release the key. The digest stays: only the same request may retry.
			rec = record{Digest: r.Digest, Owner: "released", Expires: 0}
			if ok && neverCached(e.Code) { // a corrected request may use the same key
				rec.Digest = ""
			}
		} else {
			rec = record{Digest: r.Digest, Fault: e.Envelope()}
		}
	}
	value, merr := json.Marshal(rec)
	if merr != nil {
		return
	}
	_, _ = k.store.Update(ctx, r.storeKey(), value, revision)
}

// neverCached reports answers after which the key can be used for a corrected request.
func neverCached(c fault.Code) bool {
	status := fault.Lookup(c).HTTP
	return status == 400 || status == 401 || status == 403
}

// RecordFailure records the final failure of a request without a pending record.
func (k *Keeper) RecordFailure(ctx context.Context, r Request, e *fault.Error) {
	if !Final(e.Code) {
		return
	}
	value, err := json.Marshal(record{Digest: r.Digest, Fault: e.Envelope()})
	if err != nil {
		return
	}
	_, _ = k.store.Update(context.WithoutCancel(ctx), r.storeKey(), value, 0)
}

// Final reports whether a retry would fail alike, so that the failure is recorded: 4xx
// except 400, 401, 403, 429 and retryable codes (OpenWOP host contract §2.1).
func Final(c fault.Code) bool {
	row := fault.Lookup(c)
	switch row.HTTP {
	case 400, 401, 403, 429:
		return false
	}
	return row.HTTP >= 400 && row.HTTP < 500 && !row.Retryable && c != fault.IdempotencyKeyMismatch
}
