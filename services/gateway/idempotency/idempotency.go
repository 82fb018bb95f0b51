// Package idempotency answers a repeated request with the first one's answer
// (OpenWOP host contract §2.1).
//
// Creating a run needs none of it for its success: the run's id derives from the
// key, and the log decides. Everything else keeps a record: pending under a
// lease while the request runs, then its final answer.
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

// MaxKeyLength is the longest Idempotency-Key, in bytes.
const MaxKeyLength = 255

// lease is how long a pending request keeps others out; longer than any request
// may take. A lapsed one may be taken over.
const lease = 60 * time.Second

// Keeper keeps records. It is safe for concurrent use.
type Keeper struct {
	store kv.Store
	clock func() time.Time
}

// New makes a keeper over a store.
func New(store kv.Store, clock func() time.Time) *Keeper { return &Keeper{store: store, clock: clock} }

// Request names a request: whose, which operation, under which key, and what it asks.
type Request struct {
	Tenant, Operation, Key string
	// Digest is that of the canonical request; see Digest.
	Digest string
}

// CheckKey refuses a key that cannot be one.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKeyLength {
		return fault.New(fault.ValidationError, "Idempotency-Key: want 1 to %d characters, got %d", MaxKeyLength, len(key))
	}
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return fault.New(fault.ValidationError, "Idempotency-Key: want printable ASCII without white space")
		}
	}
	return nil
}

// Digest identifies a request by its canonical JSON: member order and number
// spelling do not matter, anything else does (OpenWOP host contract §2.1).
func Digest(doc []byte) (string, error) {
	form, err := canonical(doc)
	if err != nil {
		return "", fault.New(fault.ValidationError, "the request has no canonical form: %s", "a number or text in it cannot be represented").Wrap(err)
	}
	sum := sha256.Sum256(form)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// record is what the store holds.
type record struct {
	Digest string `json:"digest"`
	// Owner is set while the request is pending, until Expires.
	Owner   string `json:"owner,omitempty"`
	Expires int64  `json:"expires,omitempty"`
	// Response is the answer's message; Fault its error envelope.
	Response []byte          `json:"response,omitempty"`
	Fault    json.RawMessage `json:"fault,omitempty"`
}

// Answer is a recorded answer: a message, or an error.
type Answer struct {
	Response []byte
	Err      *fault.Error
}

// storeKey is never the key itself: keys are the caller's and may be anything.
func (r Request) storeKey() string {
	sum := sha256.Sum256([]byte(r.Tenant + ":" + r.Operation + ":" + r.Key))
	return "idem." + hex.EncodeToString(sum[:])
}

// Recorded finds the final answer to a request; nil when there is none.
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
	if err != nil {
		return nil, 0, down(err)
	}
	var rec record
	if err := json.Unmarshal(e.Value, &rec); err != nil {
		return nil, 0, fmt.Errorf("read idempotency record: %w", err)
	}
	return &rec, e.Revision, nil
}

func down(err error) error {
	return fault.New(fault.ServiceUnavailable, "idempotency records cannot be reached; nothing was done, try again").After(time.Second).Wrap(err)
}

// Do carries a request out once. do gives the answer's message; replayed reports
// that it was given before. Answers that may change on a retry are not kept.
func (k *Keeper) Do(ctx context.Context, r Request, do func() ([]byte, error)) (response []byte, replayed bool, err error) {
	rec, revision, err := k.load(ctx, r)
	if err != nil {
		return nil, false, err
	}
	if rec != nil {
		switch {
		case rec.Digest != "" && rec.Digest != r.Digest: // checked before in-flight
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
		return 0, down(err)
	}
	return rev, nil
}

// finishTimeout bounds the writing of an answer that the caller may no longer wait for.
const finishTimeout = 5 * time.Second

// finish keeps a final answer, or gives the key free for a retry. If that fails
// the lease lapses.
func (k *Keeper) finish(ctx context.Context, r Request, revision uint64, response []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	rec := record{Digest: r.Digest, Response: response}
	if err != nil {
		e, ok := fault.As(err)
		if !ok || !Final(e.Code) {
			// Given free: the digest stays, an expired pending record may be retried.
			rec = record{Digest: r.Digest, Owner: "released", Expires: 0}
			if ok && neverCached(e.Code) { // the corrected request may come under the same key
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

// neverCached are the answers that leave no trace: the request was not taken.
func neverCached(c fault.Code) bool {
	status := fault.Lookup(c).HTTP
	return status == 400 || status == 401 || status == 403
}

// RecordFailure keeps the final failure of a request that keeps no pending record.
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

// Final reports that a failure would be the same on a retry and is replayed:
// 4xx but for 400, 401, 403, 429 and what is retryable (OpenWOP host contract §2.1).
func Final(c fault.Code) bool {
	row := fault.Lookup(c)
	switch row.HTTP {
	case 400, 401, 403, 429:
		return false
	}
	return row.HTTP >= 400 && row.HTTP < 500 && !row.Retryable && c != fault.IdempotencyKeyMismatch
}
