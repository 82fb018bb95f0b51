package hostfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadToken_RejectsGuessableTokens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	for text, ok := range map[string]bool{
		"0123456789abcdef\n": true,
		"short":              false,
		"0123456789 abcdef":  false,
		"":                   false,
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := ReadToken(path)
		require.Equal(t, ok, err == nil, text)
	}
}
