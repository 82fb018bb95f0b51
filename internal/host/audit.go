package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/lifecycle"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
)

// Audit configures the audit log and its signing key.
type Audit struct {
	On bool
	// KeyFile is the same for all gateways of a host; empty uses a file in the data directory, created
	// on first use.
	KeyFile string
}

// check returns the error in the values.
func (o *Audit) check() error {
	if o.KeyFile != "" && !o.On {
		return errors.New("--audit-key-file has no effect with --audit=false: leave one of them out")
	}
	return nil
}

// validate also reads the key.
func (o *Audit) validate() error {
	if err := o.check(); o.KeyFile == "" || err != nil {
		return err
	}
	if _, err := hostfile.ReadAuditKey(o.KeyFile); err != nil {
		return fmt.Errorf("--audit-key-file %s: %w", o.KeyFile, err)
	}
	return nil
}

// key reads the operator's key, or the one in the data directory.
func (o *Audit) key(dataDir string, log *slog.Logger) (*audit.Key, error) {
	if o.KeyFile != "" {
		return hostfile.ReadAuditKey(o.KeyFile)
	}
	return hostfile.AuditKey(dataDir, log)
}

// openAudit opens the audit log and starts its checkpoints; nil if it is disabled.
func (c *core) openAudit(o *Audit, dataDir string) (*audit.Log, error) {
	if !o.On {
		return nil, nil //nolint:nilnil // there is none
	}
	key, err := o.key(dataDir, c.log)
	if err != nil {
		return nil, err
	}
	log := audit.New(audit.DefaultConfig(), audit.Deps{
		Store: c.stores.Audit, Key: key, Scrub: scrubFor(c.clients.Redactor), Clock: time.Now, Logger: c.log,
	})
	c.group.Start(lifecycle.Part{Name: "audit log", Run: log.Run})
	return log, nil
}

// scrubFor returns a function that redacts documents about a tenant.
func scrubFor(r redactorv1.RedactorClient) func(context.Context, string, []byte) ([]byte, error) {
	return func(ctx context.Context, tenant string, doc []byte) ([]byte, error) {
		ctx, cancel := withPatience(ctx)
		defer cancel()
		res, err := r.Redact(ctx, &redactorv1.RedactRequest{
			Scope:     &redactorv1.Scope{Tenant: tenant},
			Documents: [][]byte{doc},
		})
		if err != nil {
			return nil, err
		}
		if len(res.GetDocuments()) != 1 {
			return nil, errors.New("the redactor gave no document back")
		}
		return res.GetDocuments()[0], nil
	}
}
