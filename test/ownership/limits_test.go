package ownership

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A provider's limit is that of all dispatchers together, and each of them makes calls.
func TestProviderLimits_AreThoseOfAllDispatchers(t *testing.T) {
	together(t)
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"providers":{"lab":{"maxConcurrent":5}}}`), 0o600))
	const runs = 48
	s := size{16, runs, 250 * time.Millisecond}
	r := newRig(t, pick(t, s, s), same(2, "--provider-settings", file)...)
	r.start(t, askOnce, runs)
	r.completed(t)
	r.once(t, runs)
	by := map[string]int{}
	most := 0
	for _, c := range r.calls(nil) {
		by[c.by]++
		began := func(o call) bool { return !o.began.After(c.began) && o.ended.After(c.began) }
		most = max(most, len(r.calls(began)))
	}
	require.Equal(t, 5, most)
	require.Len(t, by, 2)
}
