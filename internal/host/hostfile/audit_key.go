package hostfile

import (
	"errors"
	"fmt"
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
func AuditKey(dataDir string) (*audit.Key, error) {
	path := filepath.Join(dataDir, "audit.key")
	k, err := ReadAuditKey(path)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w; restore it: checkpoints that were signed with it cannot be verified with another", path, err)
		}
		return k, nil
	}
	if k, err = audit.NewKey(); err != nil {
		return nil, err
	}
	text, err := k.PEM()
	if err != nil {
		return nil, err
	}
	return k, WriteKey(path, text)
}
