package host

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

// interruptKeys sign the tokens of interrupts: the operator's keys, or one that derives
// from the host's.
func (h *Host) interruptKeys() (token.Keys, error) {
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
		return nil, fmt.Errorf("%w: --interrupt-keys: %w", exit.ErrUsage, err)
	}
	return keys, nil
}

// KeyFileFlag is that of the key which all services of a host share.
func (o *Options) KeyFileFlag(f *pflag.FlagSet) {
	f.StringVar(&o.keyFile, "host-key-file", "", "file with the secret of the host, of 32 bytes at least and the same for all its services: ids of runs, tokens and sealed values derive from it; required")
}

func (o *Options) CheckKeyFile() error {
	if o.keyFile == "" {
		return errors.New("--host-key-file: give the file of the secret that all services of the host share")
	}
	_, err := hostfile.ReadKey("--host-key-file", o.keyFile)
	return err
}

// key is the secret of the host.
func (o *Options) key() ([]byte, error) {
	if o.keyFile != "" {
		return hostfile.ReadKey("--host-key-file", o.keyFile)
	}
	return hostfile.HostKey(o.DataDir)
}
