package host

import (
	"errors"
	"fmt"
	"log/slog"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/acceptor/assets"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

// Key is the file of the host's secret, from which run ids, tokens and sealed values derive.
type Key struct {
	// File has the secret that all services of the host share; empty uses a file in DataDir, created
	// on first use.
	File, DataDir string
	// log is only needed with DataDir.
	log *slog.Logger
}

// Validate checks the file that services in several processes share.
func (k Key) Validate() error {
	if k.File == "" {
		return errors.New("--host-key-file: give the file of the secret that all services of the host share")
	}
	_, err := k.secret()
	return err
}

func (k Key) secret() ([]byte, error) {
	if k.File != "" {
		return hostfile.ReadKey("--host-key-file", k.File)
	}
	return hostfile.HostKey(k.DataDir, k.log)
}

// interruptKeys are the keys that sign interrupt tokens: the operator's, or one derived from
// the host's secret.
func (k Key) interruptKeys(flags []string) (token.Keys, error) {
	secret, err := k.secret()
	if err != nil {
		return nil, err
	}
	derived, err := token.DeriveKey(secret, interrupttoken.Purpose)
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys(flags, derived)
	if err != nil {
		return nil, exit.Usagef("--interrupt-keys: %w", err)
	}
	return keys, nil
}

// assetKeys are the keys that sign URLs of assets: the operator's, or one derived from a secret.
func assetKeys(flags []string, secret []byte) (token.Keys, error) {
	derived, err := assets.DeriveKey(secret)
	if err != nil {
		return nil, err
	}
	keys, err := token.ParseKeys(flags, derived)
	if err != nil {
		return nil, exit.Usagef("--asset-keys: %w", err)
	}
	return keys, nil
}

func validateAssetKeys(flags []string) error {
	if _, err := token.ParseKeys(flags, nil); err != nil {
		return fmt.Errorf("--asset-keys: %w", err)
	}
	return nil
}
