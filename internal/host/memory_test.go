package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGroupMemory_TakesTheLowestLimitAbove(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		self  string
		files map[string]string
		want  int64
	}{
		"version 2":       {"0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "536870912\n"}, 512 << 20},
		"own namespace":   {"0::/\n", map[string]string{"memory.max": "268435456\n"}, 256 << 20},
		"version 1":       {"9:cpu:/x\n4:memory:/x\n0::/\n", map[string]string{"memory/x/memory.limit_in_bytes": "1048576\n"}, 1 << 20},
		"version 1, none": {"4:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"no files":        {"0::/gone\n", nil, 0},
	} {
		dir := t.TempDir()
		self := filepath.Join(dir, "self")
		require.NoError(t, os.WriteFile(self, []byte(tt.self), 0o600))
		for file, text := range tt.files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		require.Equal(t, tt.want, groupMemoryIn(self, dir), name)
	}
	require.Zero(t, groupMemoryIn("/nonexistent", "/nonexistent"))
}

// Caches are a part of a small process's memory.
func TestCacheBytes_FollowTheMemory(t *testing.T) {
	t.Parallel()
	require.Equal(t, 64<<20, cacheBytes(64<<20, 8<<30))
	require.Equal(t, 24<<20, cacheBytes(64<<20, 384<<20))
	require.Equal(t, leastCache, cacheBytes(64<<20, 64<<20))
	cfg := eventLogConfig(256 << 20)
	require.Equal(t, 16<<20, cfg.HotBytes)
	require.Equal(t, 16<<20, cfg.ViewBytes)
	require.NoError(t, cfg.Validate())
}
