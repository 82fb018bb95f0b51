package host

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	auditstore "waybill.dev/waybill/internal/audit/jetstream"
	"waybill.dev/waybill/internal/backup"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/version"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// maxSocketPath is the longest path of a socket that all systems accept.
const maxSocketPath = 103

// copyPrefix is the prefix of directories with a copy of the read model.
const copyPrefix = "backup-"

// The names in a backup.
const (
	backupFiles   = "files/"
	backupStreams = "streams/"
	backupAbout   = "/about.json"
)

// maxKeyFile limits the files of the data directory that are part of a backup.
const maxKeyFile = 16 << 20

// notBackedUp are streams that are derived from the log, or mean nothing to another process.
var notBackedUp = []string{
	jetkv.Stream("waybill_snapshots"), jetkv.Stream("waybill_leases"), jetkv.Stream(queue.Bucket), jetkv.Stream(queue.RateBucket),
}

// backupFirst are streams that are read before the log, the others after it. What is read before may
// lack what the log has: webhooks are delivered again, and a keyed request finds its run by its id. What
// is read after it may have more: the assets and definitions that the log refers to. The audit log is
// the last one, so that it has everything that is in the others.
var backupFirst = []string{
	jetkv.Stream("waybill_webhooks"), jetkv.Stream("waybill_webhook_lanes"), jetkv.Stream("waybill_webhook_dead"),
	jetkv.Stream("waybill_idempotency"), subject.Stream,
}

// BackupSocket is where a host with a data directory hands out backups.
func BackupSocket(dataDir string) string { return filepath.Join(dataDir, "backup.sock") }

// backupServer hands out backups over a socket in the data directory, which only the operator can open.
type backupServer struct {
	host *Host
	busy sync.Mutex
}

// serveBackups starts to serve backups. A host whose data directory has too long a path has none.
func (h *Host) serveBackups() error {
	path := BackupSocket(h.opts.DataDir)
	if len(path) > maxSocketPath {
		h.log.Warn("no backups while serving: the path of --data-dir is too long for a socket", "path", path, "limit", maxSocketPath)
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed
		return fmt.Errorf("backup socket: %w", err)
	}
	copies, err := filepath.Glob(filepath.Join(h.opts.DataDir, copyPrefix+"*"))
	if err != nil {
		return fmt.Errorf("backup socket: %w", err)
	}
	for _, left := range copies { // of a process that was killed during a backup
		if err := os.RemoveAll(left); err != nil {
			return fmt.Errorf("remove an old copy of the read model: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("backup socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("backup socket: %w", errors.Join(err, l.Close()))
	}
	b := &backupServer{host: h}
	srv := &http.Server{Handler: http.HandlerFunc(b.serve), ReadHeaderTimeout: 10 * time.Second}
	h.group.Start(lifecycle.Part{Name: "backups", Run: func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
		if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}})
	return nil
}

// BackupError is the trailer with the reason why a backup is incomplete.
const BackupError = "Waybill-Backup-Error"

func (b *backupServer) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/backup" {
		http.Error(w, "want POST /backup", http.StatusNotFound)
		return
	}
	if !b.busy.TryLock() {
		http.Error(w, "another backup is being written; try again when it has ended", http.StatusConflict)
		return
	}
	defer b.busy.Unlock()
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Trailer", BackupError)
	began := time.Now()
	err := b.host.backUp(r.Context(), w)
	if err != nil {
		b.host.log.Error("backup not written", "error", err)
		w.Header().Set(BackupError, strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	b.host.log.Info("backup written", "took", time.Since(began).Round(time.Millisecond))
}

// backUp writes a backup. What was acknowledged before the call is in it.
func (h *Host) backUp(ctx context.Context, to io.Writer) error {
	w, err := backup.NewWriter(to, backup.Format{Host: version.Version, At: time.Now().UTC().Truncate(time.Millisecond)})
	if err != nil {
		return err
	}
	defer h.pauseTiers()() // the log and the cold store agree
	if err := h.backUpFiles(w); err != nil {
		return err
	}
	if err := h.backUpDatabase(ctx, w, readModelFile); err != nil { // before the log: it must not be ahead
		return err
	}
	nc, err := h.nats.Connect("backup")
	if err != nil {
		return err
	}
	defer nc.Close()
	names, err := backupOrder(ctx, nc)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := natslink.Snapshot(ctx, nc, name, func(s natslink.StreamSnapshot) error {
			doc, err := json.Marshal(s)
			if err != nil {
				return err
			}
			return w.File(backupStreams+name+backupAbout, doc)
		}, w.Parts(backupStreams+name))
		if err != nil {
			return err
		}
	}
	if h.tiers.file { // after the log: it has what the log says is sealed
		if err := h.backUpDatabase(ctx, w, coldFile); err != nil {
			return err
		}
	}
	return w.Close()
}

// backupOrder returns the streams in the order in which they are read.
func backupOrder(ctx context.Context, nc *nats.Conn) ([]string, error) {
	api, err := js.New(nc)
	if err != nil {
		return nil, err
	}
	list := api.StreamNames(ctx)
	var names []string
	for name := range list.Name() {
		if !slices.Contains(notBackedUp, name) {
			names = append(names, name)
		}
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("list streams: %w", err)
	}
	rank := func(name string) int {
		if i := slices.Index(backupFirst, name); i >= 0 {
			return i
		}
		if name == auditstore.Stream {
			return len(backupFirst) + 1
		}
		return len(backupFirst)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b)) })
	return names, nil
}

// backUpFiles writes the files of the data directory, which are keys.
func (h *Host) backUpFiles(w *backup.Writer) error {
	entries, err := os.ReadDir(h.opts.DataDir)
	if err != nil {
		return fmt.Errorf("read --data-dir: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == hostfile.LockName || strings.HasPrefix(e.Name(), readModelFile) || strings.HasPrefix(e.Name(), coldFile) {
			continue
		}
		if info, err := e.Info(); err != nil || info.Size() > maxKeyFile {
			h.log.Warn("a file of the data directory is not in the backup: it is too large for a key", "file", e.Name())
			continue
		}
		content, err := os.ReadFile(filepath.Join(h.opts.DataDir, e.Name()))
		if err != nil {
			return fmt.Errorf("read %s: %w", e.Name(), err)
		}
		if err := w.File(backupFiles+e.Name(), content); err != nil {
			return err
		}
	}
	return nil
}

// backUpDatabase writes a consistent copy of a database, which SQLite makes while it is in use. That of
// the read model saves a restored host the time to read the whole log.
func (h *Host) backUpDatabase(ctx context.Context, w *backup.Writer, name string) error {
	dir, err := os.MkdirTemp(h.opts.DataDir, copyPrefix)
	if err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	into := filepath.Join(dir, name)
	if err := vacuumInto(ctx, filepath.Join(h.opts.DataDir, name), into); err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	f, err := os.Open(into) //nolint:gosec // G304: written above
	if err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	return w.Copy(backupFiles+name, f)
}

func vacuumInto(ctx context.Context, path, into string) error {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", into)
	return err
}
