package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
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
	_, err := hostfile.ReadAuditKey(o.keyFile)
	if err != nil {
		return fmt.Errorf("--audit-key-file %s: %w", o.keyFile, err)
	}
	return nil
}

// key is the operator's, or one of this host's own.
func (o *auditOptions) key(dataDir string) (*audit.Key, error) {
	if o.keyFile != "" {
		return hostfile.ReadAuditKey(o.keyFile)
	}
	return hostfile.AuditKey(dataDir)
}

// openAudit makes the audit log, and starts what makes its checkpoints; nil: none is kept.
func (h *Host) openAudit() (*audit.Log, error) {
	if !h.opts.audit.on {
		return nil, nil //nolint:nilnil // there is none
	}
	key, err := h.opts.audit.key(h.opts.DataDir)
	if err != nil {
		return nil, err
	}
	log := audit.New(audit.DefaultConfig(), audit.Deps{
		Store: h.stores.Audit, Key: key, Scrub: scrubFor(h.Clients.redactor), Clock: time.Now, Logger: h.Log,
	})
	h.Group.Start(lifecycle.Part{Name: "audit log", Run: log.Run})
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
