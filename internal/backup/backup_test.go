package backup_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/backup"
)

var at = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func write(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, backup.Format{Host: "v1", At: at})
	require.NoError(t, err)
	require.NoError(t, w.File("files/host.key", []byte("secret")))
	require.NoError(t, w.Copy("files/large", strings.NewReader(strings.Repeat("x", 2<<20+7))))
	parts := w.Parts("streams/A")
	for _, p := range []string{"one", "two"} {
		require.NoError(t, parts([]byte(p)))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestBackup_ComesBack(t *testing.T) {
	t.Parallel()
	doc := write(t)
	f, n, err := backup.Verify(bytes.NewReader(doc))
	require.NoError(t, err)
	require.Equal(t, backup.Format{Version: backup.Version, Host: "v1", At: at}, f)
	require.Greater(t, n, int64(2<<20))
	r := backup.NewReader(bytes.NewReader(doc))
	got := map[string]string{}
	for {
		name, parts, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if !parts {
			b, err := r.Document()
			require.NoError(t, err)
			got[name] = string(b)
			continue
		}
		for {
			b, err := r.Part(name)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			got[name] += string(b)
		}
	}
	require.Equal(t, "secret", got["files/host.key"])
	require.Len(t, got["files/large"], 2<<20+7)
	require.Equal(t, "onetwo", got["streams/A"])
}

// Every cut and every flipped bit that changes content is found.
func TestVerify_FindsDamage(t *testing.T) {
	t.Parallel()
	doc := write(t)
	whole := len(doc) - 1024 // a tar ends with two empty blocks
	for _, n := range []int{0, 1, 511, 512, 600, 1 << 20, whole / 2, whole - 512} {
		_, _, err := backup.Verify(bytes.NewReader(doc[:n]))
		require.ErrorIs(t, err, backup.ErrDamaged, "cut at %d", n)
	}
	for _, text := range []string{"secret", "xxxx", "one", `"version":1`, "files/host.key", "sha256"} {
		i := bytes.Index(doc, []byte(text))
		require.Positive(t, i, text)
		bad := bytes.Clone(doc)
		bad[i+1] ^= 4
		_, _, err := backup.Verify(bytes.NewReader(bad))
		require.ErrorIs(t, err, backup.ErrDamaged, text)
	}
	_, _, err := backup.Verify(strings.NewReader(strings.Repeat("not a tar ", 1000)))
	require.ErrorIs(t, err, backup.ErrDamaged)
}

// full is a writer without space.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestWriter_ReportsAFullDisk(t *testing.T) {
	t.Parallel()
	w, err := backup.NewWriter(&full{left: 4096}, backup.Format{})
	require.NoError(t, err)
	err = w.Copy("large", strings.NewReader(strings.Repeat("x", 8192)))
	require.ErrorContains(t, err, "no space left on device")
}
