package chaos

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// mountSmall puts a small file system on dir. It needs the right to mount.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// fill writes a file until nothing more fits.
func fill(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	require.NoError(t, err)
	block := make([]byte, 64<<10)
	for {
		if _, err := f.Write(block); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			break
		}
	}
	require.NoError(t, f.Close())
}
