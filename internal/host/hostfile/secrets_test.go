package hostfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadSecrets_ErrorsHaveLinesButNoValues(t *testing.T) {
	t.Parallel()
	file := func(mode os.FileMode, text string) string {
		path := filepath.Join(t.TempDir(), "secrets.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	got, err := ReadSecrets(file(0o600, "db: correct-horse\nmail: battery-staple\n"))
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "correct-horse", got[0].Value.Reveal())
	_, err = ReadSecrets(file(0o600, "db: correct-horse\n\nmail: horse\n"))
	require.ErrorContains(t, err, "secrets.yaml:3: ")
	for name, path := range map[string]string{
		"in its id":   file(0o600, "id-correct-horse-9: correct-horse-9\n"),
		"open to all": file(0o604, "db: correct-horse\n"),
		"no YAML":     file(0o600, "db: [correct-horse\n"),
		"no map":      file(0o600, "- correct-horse\n"),
		"too short":   file(0o600, "db: horse\n"),
		"a bad id":    file(0o600, "\"a]b\": correct-horse\n"),
		"not there":   "no-such-file",
	} {
		_, err := ReadSecrets(path)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "horse", name)
	}
}
