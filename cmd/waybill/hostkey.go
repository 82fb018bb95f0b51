package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

// interruptKeys sign the tokens of interrupts: the operator's keys, or one that derives
// from the host's.
func (h *host) interruptKeys() (token.Keys, error) {
	secret, err := h.opts.key()
	if err != nil {
		return nil, err
	}
	derived, err := token.DeriveKey(secret, interrupttoken.Purpose)
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys(h.opts.interruptKeys, derived)
	if err != nil {
		return nil, fmt.Errorf("%w: --interrupt-keys: %w", errUsage, err)
	}
	return keys, nil
}

// keyFileFlag is that of the key which all services of a host share.
func (o *devOptions) keyFileFlag(f *pflag.FlagSet) {
	f.StringVar(&o.keyFile, "host-key-file", "", "file with the secret of the host, of 32 bytes at least and the same for all its services: ids of runs, tokens and sealed values derive from it; required")
}

func (o *devOptions) checkKeyFile() error {
	if o.keyFile == "" {
		return errors.New("--host-key-file: give the file of the secret that all services of the host share")
	}
	_, err := readSecretFile("--host-key-file", o.keyFile)
	return err
}

// key is the secret of the host.
func (o *devOptions) key() ([]byte, error) {
	if o.keyFile != "" {
		return readSecretFile("--host-key-file", o.keyFile)
	}
	return hostKey(o.dataDir)
}

// minHostSecret is the shortest secret that others may derive from, in bytes.
const minHostSecret = 32

// readSecretFile reads a secret that the operator keeps in a file.
func readSecretFile(flag, file string) ([]byte, error) {
	secret, err := readPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, file, unwrapped(err))
	}
	if len(secret) < minHostSecret {
		return nil, fmt.Errorf("%s %s: a key needs at least %d bytes", flag, file, minHostSecret)
	}
	return secret, nil
}

// readPrivate reads a file, unless everybody may.
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

// hostKey is a secret of this host, made on first use: run ids derive from it.
func hostKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, "host.key")
	key, err := os.ReadFile(path) //nolint:gosec // G304: the operator names the directory
	if err == nil && len(key) >= 32 {
		return key, nil
	}
	if err == nil {
		return nil, fmt.Errorf("%s is cut short: restore it; without it repeated requests would not find their runs", path)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("host key: %w", err)
	}
	key = make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("host key: %w", err)
	}
	return key, writeKey(path, key)
}

// writeKey is durable before the first run derives from it.
func writeKey(path string, key []byte) error {
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
