package audit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/audit/memory"
)

// Changes that only hide entries from readers are found, too.
func TestVerify_FindsMisplacedEntries(t *testing.T) {
	t.Parallel()
	entries, checkpoints := audit.List{Tenant: "acme", Kind: audit.Entries}, audit.List{Tenant: "acme", Kind: audit.Checkpoints}
	for name, tc := range map[string]struct {
		change func(*memory.Store)
		at     []int64
	}{
		"one that is passed over":    {func(s *memory.Store) { s.Misplace(entries, 5, -5000) }, []int64{5}},
		"one with too early a time": {func(s *memory.Store) { s.Misplace(entries, 5, 7000) }, []int64{5}},
		"the last":                   {func(s *memory.Store) { s.Misplace(entries, 7, -5000) }, []int64{7}},
		"what is no append":          {func(s *memory.Store) { s.Damage(entries, 5) }, []int64{5}},
		"checkpoints":                {func(s *memory.Store) { s.Damage(checkpoints, 0) }, nil},
	} {
		r := newRig(t)
		r.record(t, "acme", 8)
		r.anchored(t, "acme", 2)
		tc.change(r.store)
		res, err := r.Verify(t.Context(), "acme", audit.Window{})
		require.NoError(t, err, name)
		require.False(t, res.ChainValid, name)
		var at []int64
		for _, a := range res.Anomalies {
			at = append(at, a.AtSeq)
		}
		require.Equal(t, tc.at, at, name)
	}
}
