// Package hostlog has the commands about the log that a host keeps.
package hostlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/audit"
	auditstore "waybill.dev/waybill/internal/audit/jetstream"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/verdict"
	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/logverify"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

// Command is about the log that a host keeps.
func Command(s *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "log", Short: "Look after the log that a host keeps"}
	c.AddCommand(logVerifyCommand(s))
	return c
}

// logVerifyOptions say where the log is.
type logVerifyOptions struct {
	dataDir, auditKey string
	nats              natsstore.Address
}

func logVerifyCommand(s *session.Session) *cobra.Command {
	o := logVerifyOptions{nats: natsstore.DefaultAddress()}
	c := &cobra.Command{
		Use:   "verify",
		Short: "Look whether a host's stored log is as it was written",
		Long: `Reads all of the log that a host keeps, and looks whether it is as it was written: each
frame is there and matches its hash, the frames of each run follow one another, nothing
follows the end of a run, and the events of each run keep what run verify looks at. Of the
audit log it looks at the chain of each tenant, and at the checkpoints with the key that
signed them.

The log is that of --nats, while its host serves, or that below --data-dir of a host that is
stopped. The server of a data directory is started for as long as it takes, as the host would
do it; nothing is appended. What a frame holds is not shown.

Exits with 0 if nothing was found, 1 if something was, 5 if there is no log.`,
		Example: `  waybill log verify --data-dir .waybill
  waybill log verify --nats nats://nats:4222 --audit-key-file audit.key -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := config.Load(cmd.LocalFlags(), os.LookupEnv)
			if err == nil {
				err = o.nats.Validate()
			}
			if err != nil {
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
			}
			p, err := s.Printer(cmd)
			if err != nil {
				return err
			}
			r, err := o.verify(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return verdict.Write(p, r.about(), r.checks())
		},
	}
	f := c.Flags()
	f.StringVar(&o.dataDir, "data-dir", ".waybill", "data directory of a host that is stopped; used without --nats")
	f.StringVar(&o.auditKey, "audit-key-file", "", "file with the key that signs checkpoints of the audit log; empty: audit.key in --data-dir")
	hostflags.NATSConnection(f, &o.nats, "empty: the log is below --data-dir")
	s.OutputFlags(f)
	return c
}

// verifiedLog is what was found in a log.
type verifiedLog struct {
	log    *logverify.Report
	audits map[string]audit.Result
	// unaudited is why there are none.
	unaudited string
}

func (o *logVerifyOptions) verify(ctx context.Context, stderr io.Writer) (*verifiedLog, error) {
	log, err := obs.NewLogger(stderr, "error", obs.FormatText)
	if err != nil {
		return nil, err
	}
	nc, done, err := o.connect(log)
	if err != nil {
		return nil, err
	}
	defer done()
	runs, err := jetstream.Attach(ctx, nc)
	if err != nil {
		return nil, natsstore.ReadError(err)
	}
	r := &verifiedLog{audits: map[string]audit.Result{}}
	if r.log, err = logverify.Verify(ctx, runs); err != nil {
		return nil, natsstore.ReadError(err)
	}
	return r, o.audit(ctx, nc, r)
}

// connect reaches the server of the log, or starts the one of the data directory.
func (o *logVerifyOptions) connect(log *slog.Logger) (*nats.Conn, func(), error) {
	if o.nats.URL != "" {
		nc, err := o.nats.Dial("log verify", log)
		if err != nil {
			return nil, nil, exit.With(exit.Unreachable, fmt.Errorf("--nats: cannot connect: %w", err))
		}
		return nc, nc.Close, nil
	}
	dir := filepath.Join(o.dataDir, "nats")
	if _, err := os.Stat(dir); err != nil { // a server would make one
		return nil, nil, exit.With(exit.NotFound, fmt.Errorf("--data-dir %s: there is no log: %w", o.dataDir, err))
	}
	unlock, err := hostfile.LockDir(o.dataDir)
	if err != nil {
		return nil, nil, exit.With(exit.Refused, err)
	}
	srv, err := natsd.Start(natsd.Config{Dir: dir, Sync: true, Hashed: natsstore.HashedStreams, Log: log}, rand.Text())
	if err != nil {
		unlock()
		return nil, nil, err
	}
	stop := func() { srv.Stop(); unlock() }
	nc, err := srv.Connect("log verify")
	if err != nil {
		stop()
		return nil, nil, err
	}
	return nc, func() { nc.Close(); stop() }, nil
}

// audit verifies the audit log of each tenant, if its key is there.
func (o *logVerifyOptions) audit(ctx context.Context, nc *nats.Conn, r *verifiedLog) error {
	store, err := auditstore.Attach(ctx, nc)
	if errors.Is(err, js.ErrStreamNotFound) {
		r.unaudited = "there is no audit log"
		return nil
	}
	if err != nil {
		return natsstore.ReadError(err)
	}
	key, err := o.key()
	if err != nil {
		return fmt.Errorf("%w: --audit-key-file: %w", exit.ErrUsage, err)
	}
	if key == nil {
		r.unaudited = "the key that signs its checkpoints is needed: --audit-key-file"
		return nil
	}
	tenants, err := store.Tenants(ctx)
	if err != nil {
		return natsstore.ReadError(err)
	}
	log := audit.New(audit.DefaultConfig(), audit.Deps{
		Store:  store,
		Key:    key,
		Clock:  time.Now,
		Logger: slog.New(slog.DiscardHandler),
	})
	for tenant := range tenants {
		if r.audits[tenant], err = log.Verify(ctx, tenant, audit.Window{}); err != nil {
			return natsstore.ReadError(err)
		}
	}
	return nil
}

// key is the key that signs checkpoints; nil: its place is unknown, or the host has no audit log.
func (o *logVerifyOptions) key() (*audit.Key, error) {
	if o.auditKey != "" {
		return hostfile.ReadAuditKey(o.auditKey)
	}
	if o.nats.URL != "" {
		return nil, nil //nolint:nilnil // there is none
	}
	key, err := hostfile.ReadAuditKey(filepath.Join(o.dataDir, "audit.key"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	return key, err
}

func (r *verifiedLog) about() map[string]any {
	return map[string]any{
		"frames": r.log.Frames, "events": r.log.Events, "runs": r.log.Runs, "lastPosition": r.log.Last,
		"auditedTenants": len(r.audits), "findingsLeftOut": r.log.More,
	}
}

// checks are the rows of the report.
func (r *verifiedLog) checks() []verdict.Check {
	var out []verdict.Check
	for _, row := range logverify.Rows() {
		c := verdict.Check{Name: row[0], Status: verdict.OK, Detail: row[1]}
		for _, f := range r.log.Findings {
			if string(f.Rule) == row[0] {
				c.Found(f, describe(f))
			}
		}
		out = append(out, c)
	}
	chain := verdict.Check{
		Name:   "audit-chain",
		Status: verdict.OK,
		Detail: "each entry of the audit log holds the hash of the one before",
	}
	marks := verdict.Check{
		Name:   "audit-checkpoints",
		Status: verdict.OK,
		Detail: "each checkpoint is signed, and is that of the entries",
	}
	if r.unaudited != "" {
		chain.Status, chain.Detail, marks.Status, marks.Detail = verdict.Skipped, r.unaudited, verdict.Skipped, r.unaudited
	}
	for _, tenant := range slices.Sorted(maps.Keys(r.audits)) {
		v := r.audits[tenant]
		for _, a := range v.Anomalies {
			chain.Found(map[string]any{"tenant": tenant, "anomaly": a}, fmt.Sprintf("tenant %s: entry %d does not hold the hash of the one before", tenant, a.AtSeq))
		}
		if !v.CheckpointsValid {
			marks.Found(map[string]any{"tenant": tenant}, fmt.Sprintf("tenant %s: not each of %d checkpoints is valid", tenant, len(v.Checkpoints)))
		}
	}
	return append(out, chain, marks)
}

// describe is a finding for people.
func describe(f logverify.Finding) string {
	var at []string
	if f.RunID != "" {
		at = append(at, "tenant "+f.Tenant+", run "+f.RunID)
	}
	if f.Pos != 0 {
		at = append(at, fmt.Sprintf("position %d", f.Pos))
	}
	return strings.Join(at, ", ") + ": " + f.Message
}
