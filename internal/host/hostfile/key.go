// Package hostfile reads and creates files of the operator: keys, tokens, secrets, and the lock of a
// data directory.
package hostfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// minHostSecret is the minimum length of a secret for key derivation, in bytes.
const minHostSecret = 32

// ReadKey reads a secret from a file of the operator.
func ReadKey(flag, file string) ([]byte, error) {
	secret, err := readPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, file, WithoutPath(err))
	}
	if len(secret) < minHostSecret {
		return nil, fmt.Errorf("%s %s: a key needs at least %d bytes", flag, file, minHostSecret)
	}
	return secret, nil
}

// readPrivate reads a file, and rejects one that all users of the machine can read.
func readPrivate(file string) ([]byte, error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if st.Mode().Perm()&0o007 != 0 {
		return nil, errors.New("everybody on this machine may read it; chmod o= it")
	}
	return os.ReadFile(file) //nolint:gosec // G304: the operator names the file
}

// HostKey reads the secret in a data directory, and creates it on first use. Run ids derive from it.
func HostKey(dir string, log *slog.Logger) ([]byte, error) {
	path := filepath.Join(dir, "host.key")
	key, err := readSummed(path, func(key []byte) error {
		if len(key) < minHostSecret {
			return fmt.Errorf("%s is cut short: restore it; without it repeated requests would not find their runs", path)
		}
		return nil
	}, log)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return key, wrapKey(err)
	}
	key = make([]byte, minHostSecret)
	if _, err := rand.Read(key); err != nil {
		return nil, wrapKey(err)
	}
	return key, createSummed(path, key)
}

func wrapKey(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("host key: %w", err)
}

// WriteKey writes a key durably: it must survive a crash, because run ids derive from it.
func WriteKey(path string, key []byte) error {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return fmt.Errorf("host key: %w", err)
	}
	_, err = f.Write(key)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return fmt.Errorf("host key: %w", err)
	}
	return nil
}
