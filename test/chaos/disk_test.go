package chaos

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mountSmall mounts a small file system on dir. It needs the permission to mount.
func mountSmall(t *testing.T, dir, size string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, size); err != nil {
		t.Skipf("SKIPPED, needs permission to mount a small file system: run it as root (%v)", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// fill writes a file until the file system is full.
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

// mountImage mounts a file system that can be frozen. It needs the permission to mount, and loop
// devices.
func mountImage(t *testing.T, dir string) {
	t.Helper()
	image := t.TempDir() + "/image"
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 256<<20))
	for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("SKIPPED, needs permission to mount an image: run it as root (%v: %s)", err, out)
		}
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

// ioctl requests of fsfreeze(8).
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

// freeze blocks all writes to a file system.
func freeze(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() { _ = ioctl(dir, fiThaw) })
	require.NoError(t, ioctl(dir, fiFreeze))
}

func thaw(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, ioctl(dir, fiThaw))
}

func ioctl(dir string, request uint) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return unix.IoctlSetInt(int(f.Fd()), request, 0)
}
