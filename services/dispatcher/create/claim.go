package create

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// claimRecord is the active run of a scope.
type claimRecord struct {
	RunID string `json:"runId"`
	At    string `json:"at"`
}

// claimLease is how long a claim is valid without its run's start frame: longer than any creation
// takes.
const claimLease = 30 * time.Second

// retryAfterActive is the retry hint for a busy scope.
const retryAfterActive = 5 * time.Second

func claimKey(tenant, scope string) string {
	sum := sha256.Sum256([]byte(scope))
	return "active." + tenant + "." + hex.EncodeToString(sum[:16])
}

// claimScope reserves the scope for the run: at most one run of (tenant, scopeId) is active
// (X-Dedup: enforce). Compare-and-set on one record decides races. A claim is never released: it
// may be unknown whether its run exists, and a claim without a run expires.
func (s *Starter) claimScope(ctx context.Context, rec *wire.RunRecord) error {
	key := claimKey(rec.Owner.Tenant, rec.ScopeID)
	value, err := json.Marshal(claimRecord{RunID: rec.RunID, At: wire.FormatTime(s.deps.Clock())})
	if err != nil {
		return fmt.Errorf("render claim: %w", err)
	}
	held, revision, err := s.readClaim(ctx, key)
	if err != nil {
		return err
	}
	if held.RunID != "" && held.RunID != rec.RunID {
		if err := s.checkActive(ctx, rec.Owner.Tenant, held); err != nil {
			return err
		}
	}
	_, err = s.deps.Claims.Update(ctx, key, value, revision)
	if errors.Is(err, kv.ErrConflict) {
		winner, _, herr := s.readClaim(ctx, key)
		if herr != nil {
			return herr
		}
		return scopeActive(winner)
	}
	if err != nil {
		return claimsUnavailable(err)
	}
	return nil
}

// scopeActive is the error of a busy scope.
func scopeActive(held claimRecord) error {
	return fault.New(fault.RunAlreadyActive, "a run of this scope is active; wait for it or cancel it").After(retryAfterActive).
		With("activeRunId", held.RunID).With("activeHost", "cloud")
}

func (s *Starter) readClaim(ctx context.Context, key string) (claimRecord, uint64, error) {
	e, err := s.deps.Claims.Get(ctx, key)
	if errors.Is(err, kv.ErrNotFound) {
		return claimRecord{}, 0, nil
	}
	if err != nil && !errors.Is(err, kv.ErrDamaged) {
		return claimRecord{}, 0, claimsUnavailable(err)
	}
	var c claimRecord
	if err := errors.Join(err, json.Unmarshal(e.Value, &c)); err != nil {
		return claimRecord{}, 0, fault.New(fault.LogDamaged, "the record of the active run of this scope is damaged: "+
			"use another scope, or restore it from a backup").Wrap(err)
	}
	return c, e.Revision, nil
}

func claimsUnavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "the store of claims is unavailable; no run was started; try again").After(time.Second).Wrap(err)
}

// checkActive returns an error while the scope's run is active.
func (s *Starter) checkActive(ctx context.Context, tenant string, held claimRecord) error {
	last, err := s.deps.Log.Last(ctx, subject.Run{Tenant: tenant, RunID: held.RunID})
	switch {
	case errors.Is(err, runlog.ErrErased): // a repeated request may have reserved the scope again
		return nil
	case errors.Is(err, runlog.ErrNotFound):
		at, perr := time.Parse(wire.TimeLayout, held.At)
		if perr != nil || s.deps.Clock().Sub(at) > claimLease {
			return nil // its creation failed
		}
	case err != nil:
		return claimsUnavailable(err)
	case last.Kind == subject.End:
		return nil
	}
	return scopeActive(held)
}

// ReleaseScope deletes the record of a run's scope, if the run was the last one to reserve it.
func (s *Starter) ReleaseScope(ctx context.Context, tenant string, rec *wire.RunRecord) error {
	if rec.ScopeID == "" {
		return nil
	}
	key := claimKey(tenant, rec.ScopeID)
	e, err := s.deps.Claims.Get(ctx, key)
	var c claimRecord
	switch {
	case errors.Is(err, kv.ErrNotFound), errors.Is(err, kv.ErrDamaged): // it names no run
		return nil
	case err != nil:
		return err
	case json.Unmarshal(e.Value, &c) != nil || c.RunID != rec.RunID:
		return nil
	}
	if err := s.deps.Claims.Delete(ctx, key, e.Revision); !errors.Is(err, kv.ErrConflict) {
		return err
	}
	return nil // another run has reserved the scope
}
