package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/lifecycle"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// auditOptions say whether there is an audit log, and who signs it.
type auditOptions struct {
	on      bool
	keyFile string
}

func (o *auditOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "audit", true, "keep an audit log of each tenant, which nobody can change unnoticed")
	f.StringVar(&o.keyFile, "audit-key-file", "", "file with the Ed25519 key (PEM, PKCS #8) that signs checkpoints of the audit log, the same for all replicas and used for nothing else; empty: audit.key in --data-dir, made on first use")
}

func (o *auditOptions) validate() error {
	if o.keyFile == "" {
		return nil
	}
	if !o.on {
		return errors.New("--audit-key-file: signs the audit log, and there is none with --audit=false")
	}
	_, err := readAuditKey(o.keyFile)
	if err != nil {
		return fmt.Errorf("--audit-key-file %s: %w", o.keyFile, err)
	}
	return nil
}

func readAuditKey(path string) (*audit.Key, error) {
	text, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	return audit.ParseKey(text)
}

// key is the operator's, or one of this host's own.
func (o *auditOptions) key(dataDir string) (*audit.Key, error) {
	if o.keyFile != "" {
		return readAuditKey(o.keyFile)
	}
	return auditKey(dataDir)
}

// auditKey reads the key of this host's own, and makes it on first use.
func auditKey(dataDir string) (*audit.Key, error) {
	path := filepath.Join(dataDir, "audit.key")
	k, err := readAuditKey(path)
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
	return k, writeKey(path, text)
}

// openAudit makes the audit log, and starts what makes its checkpoints; nil: none is kept.
func (h *host) openAudit() (*audit.Log, error) {
	if !h.opts.audit.on {
		return nil, nil //nolint:nilnil // there is none
	}
	key, err := h.opts.audit.key(h.opts.dataDir)
	if err != nil {
		return nil, err
	}
	log := audit.New(audit.DefaultConfig(), audit.Deps{
		Store: h.stores.audit, Key: key, Scrub: scrubFor(h.clients.redactor), Clock: time.Now, Logger: h.log,
	})
	h.group.Start(lifecycle.Part{Name: "audit log", Run: log.Run})
	return log, nil
}

// scrubFor takes secrets out of documents about a tenant.
func scrubFor(r redactorv1.RedactorClient) func(context.Context, string, []byte) ([]byte, error) {
	return func(ctx context.Context, tenant string, doc []byte) ([]byte, error) {
		ctx, cancel := patiently(ctx)
		defer cancel()
		res, err := r.Redact(ctx, &redactorv1.RedactRequest{Scope: &redactorv1.Scope{Tenant: tenant}, Documents: [][]byte{doc}})
		if err != nil {
			return nil, err
		}
		if len(res.GetDocuments()) != 1 {
			return nil, errors.New("the redactor gave no document back")
		}
		return res.GetDocuments()[0], nil
	}
}
