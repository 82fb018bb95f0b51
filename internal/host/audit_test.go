package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAuditKey_IsCreatedOnceAndReadableByItsOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var o Audit
	first, err := o.key(dir, nil)
	require.NoError(t, err)
	again, err := o.key(dir, nil)
	require.NoError(t, err)
	require.Equal(t, first.Public(), again.Public())
	path := filepath.Join(dir, "audit.key")
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())

	o = Audit{On: true, KeyFile: path}
	require.NoError(t, o.validate())
	given, err := o.key(t.TempDir(), nil)
	require.NoError(t, err)
	require.Equal(t, first.Public(), given.Public())
}

func TestAuditKey_ReportsInvalidKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.key")
	require.ErrorContains(t, (&Audit{On: true, KeyFile: path}).validate(), "--audit-key-file")
	require.NoError(t, os.WriteFile(path, []byte("cut sho"), 0o600))
	require.ErrorContains(t, (&Audit{On: true, KeyFile: path}).validate(), "openssl genpkey")
	_, err := (&Audit{}).key(filepath.Dir(path), nil)
	require.ErrorContains(t, err, "restore it", "one that is damaged is not replaced")
	require.NoError(t, os.Chmod(path, 0o644))
	require.ErrorContains(t, (&Audit{On: true, KeyFile: path}).validate(), "chmod")
	require.ErrorContains(t, (&Audit{KeyFile: path}).validate(), "--audit=false")
}
