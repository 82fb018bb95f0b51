package hostfile

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockPath is the lock file that prevents two hosts from using one data directory.
func lockPath(dir string) string { return filepath.Join(dir, LockName) }

// LockName is the name of the lock file.
const LockName = "lock"

// LockDir locks the data directory for this process. The kernel releases the lock when the process
// ends, however it ends.
func LockDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(lockPath(dir), os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return nil, fmt.Errorf("lock --data-dir: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("--data-dir %s is used by another waybill process: stop it, or give this one another directory", dir)
	}
	return func() { _ = f.Close() }, nil
}
