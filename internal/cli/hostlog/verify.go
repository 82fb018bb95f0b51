// Package hostlog has the commands about a host's stored log.
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
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Command is `waybill log`.
func Command(s *session.Session) *cobra.Command {
	c := &cobra.Command{Use: "log", Short: "Verify the stored log of a host"}
	c.AddCommand(logVerifyCommand(s))
	return c
}

// logVerifyOptions are the flags of `waybill log verify`.
type logVerifyOptions struct {
	dataDir, auditKey string
	nats              natsstore.Address
}

func logVerifyCommand(s *session.Session) *cobra.Command {
	o := logVerifyOptions{nats: natsstore.DefaultAddress()}
	c := &cobra.Command{
		Use:   "verify",
		Short: "Verify that a host's stored log is intact",
		Long: `Reads the whole log of a host and checks that it is intact. Every frame must exist and match
its hash, the frames of a run must be chained, no frame may follow the end of a run, and the events
must pass the checks of run verify. Sealed runs are read from the cold store in --data-dir; with
--nats they are only counted. In the audit log, it checks the hash chain of each tenant and
the signatures of the checkpoints.

With --nats, it reads the log of a running host. Without it, it reads the log in --data-dir of a
stopped host, for which it starts a NATS server in this process. As at every start of a host, a
flipped bit in a file is repaired, and what cannot be repaired is set aside in nats/damaged. It
appends nothing and does not print the content of frames.

Exit status: 0 intact; 1 damaged; 5 no log.`,
		Example: `  waybill log verify --data-dir .waybill
  waybill log verify --nats nats://nats:4222 --audit-key-file audit.key -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := config.Load(cmd.LocalFlags(), os.LookupEnv)
			if err == nil {
				err = o.nats.Validate()
			}
			if err != nil {
				return exit.With(exit.Usage, err)
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
	f.StringVar(&o.dataDir, "data-dir", ".waybill", "data directory of a stopped host; used without --nats")
	f.StringVar(&o.auditKey, "audit-key-file", "", "file with the key that signs audit log checkpoints; empty uses audit.key in --data-dir")
	hostflags.NATSConnection(f, &o.nats, "empty uses the log in --data-dir")
	s.OutputFlags(f)
	return c
}

// verifiedLog is the result of a verification.
type verifiedLog struct {
	log    *logverify.Report
	audits map[string]audit.Result
	// files is damage of files that was found at this start and before; nil with --nats.
	files []natsd.Damage
	// running means that the log was read with --nats.
	running bool
	// coldRead means that sealed runs were read.
	coldRead bool
	// unaudited is why the audit log was not verified.
	unaudited string
}

func (o *logVerifyOptions) verify(ctx context.Context, stderr io.Writer) (*verifiedLog, error) {
	log, err := obs.NewLogger(stderr, "error", obs.FormatText)
	if err != nil {
		return nil, err
	}
	nc, files, done, err := o.connect(ctx, log)
	if err != nil {
		return nil, err
	}
	defer done()
	runs, err := jetstream.Attach(ctx, nc)
	if err != nil {
		return nil, natsstore.ReadError(err)
	}
	r := &verifiedLog{audits: map[string]audit.Result{}, files: files, running: o.nats.URL != ""}
	sealed, closeCold, err := o.openCold(ctx)
	if err != nil {
		return nil, err
	}
	defer closeCold()
	if r.log, err = logverify.Verify(ctx, runs, sealed); err != nil {
		return nil, natsstore.ReadError(err)
	}
	r.coldRead = sealed != nil
	return r, o.audit(ctx, nc, r)
}

// openCold opens the cold store in the data directory; nil if there is none, or with --nats.
func (o *logVerifyOptions) openCold(ctx context.Context) (logverify.ReadCold, func(), error) {
	path := filepath.Join(o.dataDir, "cold.db")
	if _, err := os.Stat(path); o.nats.URL != "" || err != nil {
		return nil, func() {}, nil //nolint:nilerr // sealed runs of the log are then reported as unread
	}
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	read := func(ctx context.Context, run subject.Run) ([]*frame.Frame, error) {
		frames, err := cold.All(ctx, store, run)
		if errors.Is(err, cold.ErrNotFound) {
			return nil, fmt.Errorf("%w: %w", frame.ErrDamaged, err)
		}
		return frames, err
	}
	return read, func() { _ = store.Close() }, nil
}

// connect connects to the NATS server of the log, or starts one for the data directory.
func (o *logVerifyOptions) connect(ctx context.Context, log *slog.Logger) (*nats.Conn, []natsd.Damage, func(), error) {
	if o.nats.URL != "" {
		nc, err := o.nats.Dial("log verify", log)
		if err != nil {
			return nil, nil, nil, exit.With(exit.Unreachable, fmt.Errorf("--nats: cannot connect: %w", err))
		}
		return nc, nil, nc.Close, nil
	}
	dir := filepath.Join(o.dataDir, "nats")
	if _, err := os.Stat(dir); err != nil { // a server would create it
		return nil, nil, nil, exit.With(exit.NotFound, fmt.Errorf("--data-dir %s: no log: %w", o.dataDir, err))
	}
	unlock, err := hostfile.LockDir(o.dataDir)
	if err != nil {
		return nil, nil, nil, exit.With(exit.Refused, err)
	}
	srv, err := natsd.Start(ctx, natsd.Config{Dir: dir, Sync: true, Layout: natsstore.Layout{}, Log: log}, rand.Text())
	if err != nil {
		unlock()
		return nil, nil, nil, err
	}
	stop := func() { srv.Stop(); unlock() }
	nc, err := srv.Connect("log verify")
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	return nc, srv.Damage(), func() { nc.Close(); stop() }, nil
}

// audit verifies the audit log of each tenant, if its key is available.
func (o *logVerifyOptions) audit(ctx context.Context, nc *nats.Conn, r *verifiedLog) error {
	store, err := auditstore.Attach(ctx, nc)
	if errors.Is(err, js.ErrStreamNotFound) {
		r.unaudited = "no audit log"
		return nil
	}
	if err != nil {
		return natsstore.ReadError(err)
	}
	key, err := o.key()
	if err != nil {
		return exit.Usagef("--audit-key-file: %w", err)
	}
	if key == nil {
		r.unaudited = "needs the key of the checkpoints; set --audit-key-file"
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

// key reads the key that signs checkpoints; nil if its path is unknown or the file does not exist.
func (o *logVerifyOptions) key() (*audit.Key, error) {
	if o.auditKey != "" {
		return hostfile.ReadAuditKey(o.auditKey)
	}
	if o.nats.URL != "" {
		return nil, nil //nolint:nilnil // no key
	}
	key, err := hostfile.ReadAuditKey(filepath.Join(o.dataDir, "audit.key"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // no key
	}
	return key, err
}

func (r *verifiedLog) about() map[string]any {
	return map[string]any{
		"frames": r.log.Frames, "events": r.log.Events, "runs": r.log.Runs, "erasedRuns": r.log.Erased, "sealedRuns": r.log.Sealed, "lastPosition": r.log.Last,
		"auditedTenants": len(r.audits), "findingsLeftOut": r.log.More,
	}
}

// checks returns the rows of the report.
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
		Detail: "each entry of the audit log has the hash of the previous entry",
	}
	marks := verdict.Check{
		Name:   "audit-checkpoints",
		Status: verdict.OK,
		Detail: "each checkpoint is signed and matches the entries",
	}
	if r.unaudited != "" {
		chain.Status, chain.Detail, marks.Status, marks.Detail = verdict.Skipped, r.unaudited, verdict.Skipped, r.unaudited
	}
	for _, tenant := range slices.Sorted(maps.Keys(r.audits)) {
		v := r.audits[tenant]
		for _, a := range v.Anomalies {
			chain.Found(map[string]any{"tenant": tenant, "anomaly": a}, fmt.Sprintf("tenant %s: entry %d does not have the hash of the previous entry", tenant, a.AtSeq))
		}
		if !v.CheckpointsValid {
			marks.Found(map[string]any{"tenant": tenant}, fmt.Sprintf("tenant %s: an invalid checkpoint among %d", tenant, len(v.Checkpoints)))
		}
	}
	files := verdict.Check{Name: "files", Status: verdict.OK, Detail: "the files have all that was written, or what was damaged is repaired"}
	if r.running {
		files.Status, files.Detail = verdict.Skipped, "needs --data-dir"
	}
	for _, d := range r.files {
		if d.Outcome != natsd.Repaired {
			files.Found(d, fmt.Sprintf("%s at %d: %s (stream %s, sequence %d)", d.File, d.Offset, d.What, d.Stream, d.Sequence))
		}
	}
	sealed := verdict.Check{Name: "cold-store", Status: verdict.OK, Detail: "the cold store has every sealed run, unchanged"}
	if r.log.Sealed > 0 && !r.coldRead {
		sealed.Status, sealed.Detail = verdict.Skipped, fmt.Sprintf("needs --data-dir with cold.db: %d sealed runs were not read", r.log.Sealed)
	}
	for _, f := range r.log.Findings {
		if f.Rule == logverify.Cold {
			sealed.Found(f, describe(f))
		}
	}
	if r.log.Sealed > 0 {
		out = append(out, sealed)
	}
	return append(out, chain, marks, files)
}

// describe formats a finding as text.
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
