package hostfile_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/host/hostfile"
)

// keys are the keys that the host creates in a data directory: how they are read, in a form that
// shows which key it is.
var keys = map[string]func(dir string, log *slog.Logger) (string, error){
	"host.key": func(dir string, log *slog.Logger) (string, error) {
		k, err := hostfile.HostKey(dir, log)
		return string(k), err
	},
	"audit.key": func(dir string, log *slog.Logger) (string, error) {
		k, err := hostfile.AuditKey(dir, log)
		if err != nil {
			return "", err
		}
		return k.Public(), nil
	},
}

// After a flip of any bit of a key or its sum, the host has the same key, and names the file.
func TestKeys_SurviveAFlippedBit(t *testing.T) {
	t.Parallel()
	for name, read := range keys {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			want, err := read(dir, nil)
			require.NoError(t, err)
			for _, file := range []string{name, name + ".sum"} {
				path := filepath.Join(dir, file)
				sound, err := os.ReadFile(path)
				require.NoError(t, err)
				for i := range sound {
					for bit := range 8 {
						flipped := bytes.Clone(sound)
						flipped[i] ^= 1 << bit
						require.NoError(t, os.WriteFile(path, flipped, 0o600))
						var said bytes.Buffer
						got, err := read(dir, slog.New(slog.NewTextHandler(&said, nil)))
						require.NoError(t, err, "%s: byte %d, bit %d", file, i, bit)
						require.Equal(t, want, got, "%s: byte %d, bit %d", file, i, bit)
						require.Contains(t, said.String(), "ERROR")
						require.Contains(t, said.String(), file)
						repaired, err := os.ReadFile(path)
						require.NoError(t, err)
						require.Equal(t, sound, repaired)
					}
				}
			}
		})
	}
}

// A key that is damaged in more than a bit, cut short, replaced or gone is refused.
func TestKeys_RefuseAnotherKey(t *testing.T) {
	t.Parallel()
	for name, read := range keys {
		for damage, inflict := range map[string]func(path string) error{
			"gone":     os.Remove,
			"cut":      func(path string) error { return os.Truncate(path, 20) },
			"empty":    func(path string) error { return os.Truncate(path, 0) },
			"replaced": func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("k"), 40), 0o600) },
		} {
			t.Run(name+"/"+damage, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				path := filepath.Join(dir, name)
				want, err := read(dir, nil)
				require.NoError(t, err)
				require.NoError(t, inflict(path))
				_, err = read(dir, nil)
				require.ErrorContains(t, err, path)
				require.ErrorContains(t, err, "restore it")
				if damage != "gone" {
					return
				}
				require.NoError(t, os.Remove(path+".sum"))
				other, err := read(dir, nil)
				require.NoError(t, err, "the operator wants another one")
				require.NotEqual(t, want, other)
			})
		}
	}
}

// A key of an earlier build, or one that was restored, has no sum yet.
func TestKeys_GetASum(t *testing.T) {
	t.Parallel()
	for name, read := range keys {
		dir := t.TempDir()
		want, err := read(dir, nil)
		require.NoError(t, err)
		sum, err := os.ReadFile(filepath.Join(dir, name+".sum"))
		require.NoError(t, err)
		require.NoError(t, os.Remove(filepath.Join(dir, name+".sum")))
		got, err := read(dir, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
		again, err := os.ReadFile(filepath.Join(dir, name+".sum"))
		require.NoError(t, err)
		require.Equal(t, sum, again)
	}
}
