package audit_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/audit"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
)

func TestUsage_IsOneEntryPerKeyAndSurvivesAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	u := audit.NewUsage(r.Once(), func() time.Time { return r.now }, slog.New(slog.DiscardHandler))
	for range 3 {
		u.Note("acme", "key_1", "runs:read", true)
	}
	u.Note("acme", "key_1", "audit:read", false)
	r.store.Fail(audit.ErrUnavailable)
	u.Flush(t.Context())
	r.store.Fail(nil)
	u.Note("acme", "key_1", "runs:read", true)
	u.Note("beta", "key_2", "runs:read", true)
	u.Flush(t.Context())
	u.Flush(t.Context())
	require.Len(t, r.lines(t, "beta"), 1)
	lines := r.lines(t, "acme")
	require.Len(t, lines, 1)
	require.Contains(t, string(lines[0]), `"action":"key.used","actor":"key_1"`)
	require.Contains(t, string(lines[0]), `"denied":{"audit:read":1}`)
	require.Contains(t, string(lines[0]), `"granted":{"runs:read":4}`)
}

func TestSyncKeys_RecordsChangesOfKeys(t *testing.T) {
	t.Parallel()
	r, store := newRig(t), kvmemory.New()
	sync := func(held ...audit.HeldKey) {
		t.Helper()
		require.NoError(t, audit.SyncKeys(t.Context(), r.Log, store, held))
	}
	one, two := audit.HeldKey{
		Tenant: "acme",
		ID:     "key_1",
		Scopes: []string{"b", "a"},
	}, audit.HeldKey{Tenant: "acme", ID: "key_2", Scopes: []string{"*"}}
	sync(one)
	sync(one, two)
	sync(one, two)
	one.Scopes = []string{"a"}
	sync(one)
	sync(one, two)
	var recorded []string
	for _, line := range r.lines(t, "acme") {
		var e struct{ Action, Target string }
		require.NoError(t, json.Unmarshal(line, &e))
		recorded = append(recorded, e.Action+" "+e.Target)
	}
	require.Equal(t, []string{
		"key.created keys/key_1", "key.created keys/key_2", "key.scopes-changed keys/key_1",
		"key.revoked keys/key_2", "key.created keys/key_2",
	}, recorded)
}

func TestParseKey_ReadsWhatItWrites(t *testing.T) {
	t.Parallel()
	k, err := audit.NewKey()
	require.NoError(t, err)
	text, err := k.PEM()
	require.NoError(t, err)
	again, err := audit.ParseKey(text)
	require.NoError(t, err)
	require.Equal(t, k.Public(), again.Public())
	for _, bad := range []string{"", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		_, err := audit.ParseKey([]byte(bad))
		require.Error(t, err)
	}
}

func BenchmarkUsage(b *testing.B) {
	u := audit.NewUsage(audit.Off{}, time.Now, slog.New(slog.DiscardHandler))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			u.Note("acme", "key_1", "runs:read", true)
		}
	})
}
