package hostfile

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"waybill.dev/waybill/internal/audit"
)

// ReadAuditKey reads the key that signs the audit log.
func ReadAuditKey(path string) (*audit.Key, error) {
	text, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	return audit.ParseKey(text)
}

// AuditKey reads the audit key in a data directory, and creates it on first use.
func AuditKey(dataDir string, log *slog.Logger) (*audit.Key, error) {
	path := filepath.Join(dataDir, "audit.key")
	var k *audit.Key
	text, err := readSummed(path, func(text []byte) (err error) {
		_, err = audit.ParseKey(text)
		return err
	}, log)
	if errors.Is(err, os.ErrNotExist) {
		return createAuditKey(path)
	}
	if err == nil {
		_, err = readPrivate(path) // rejects one that others can read
	}
	if err == nil {
		k, err = audit.ParseKey(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; restore it: checkpoints that were signed with it cannot be verified with another", path, err)
	}
	return k, nil
}

func createAuditKey(path string) (*audit.Key, error) {
	k, err := audit.NewKey()
	if err != nil {
		return nil, err
	}
	text, err := k.PEM()
	if err != nil {
		return nil, err
	}
	return k, createSummed(path, text)
}
