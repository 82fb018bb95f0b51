package host

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/backup"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natslink"
)

// ErrNotEmpty means that the data directory to restore to has files.
var ErrNotEmpty = errors.New("the directory is not empty: a backup is restored to a new one")

// Restore creates a data directory from a backup. The whole backup is verified first, and the directory
// appears when everything is in it. Errors: backup.ErrDamaged, ErrNotEmpty.
func Restore(ctx context.Context, from io.ReadSeeker, dataDir string, log *slog.Logger) (backup.Format, error) {
	if err := checkNew(dataDir); err != nil {
		return backup.Format{}, err
	}
	f, _, err := backup.Verify(from)
	if err != nil {
		return f, err
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return f, fmt.Errorf("read the backup: %w", err)
	}
	parent := filepath.Dir(filepath.Clean(dataDir))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return f, fmt.Errorf("--data-dir: %w", err)
	}
	dir, err := os.MkdirTemp(parent, filepath.Base(filepath.Clean(dataDir))+".restoring-")
	if err != nil {
		return f, fmt.Errorf("--data-dir: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // after a failure
	if err := restoreInto(ctx, backup.NewReader(from), dir, log); err != nil {
		return f, err
	}
	if err := os.Remove(dataDir); err != nil && !errors.Is(err, os.ErrNotExist) { // an empty one
		return f, fmt.Errorf("--data-dir: %w", err)
	}
	if err := os.Rename(dir, dataDir); err != nil {
		return f, fmt.Errorf("--data-dir: %w", err)
	}
	return f, syncDir(parent)
}

func checkNew(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--data-dir: %w", err)
	case len(entries) > 0:
		return ErrNotEmpty
	}
	return nil
}

func restoreInto(ctx context.Context, r *backup.Reader, dir string, log *slog.Logger) error {
	srv, err := natsd.Start(ctx, natsd.Config{Dir: natsDir(dir), Sync: true, Layout: natsstore.Layout{}, Log: log}, rand.Text())
	if err != nil {
		return err
	}
	defer srv.Stop()
	nc, err := srv.Connect("restore")
	if err != nil {
		return err
	}
	defer nc.Close()
	for {
		name, parts, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file, isFile := strings.CutPrefix(name, backupFiles)
		stream, isStream := strings.CutPrefix(strings.TrimSuffix(name, backupAbout), backupStreams)
		switch {
		case isFile && filepath.IsLocal(file) && filepath.Base(file) == file:
			err = restoreFile(r, name, parts, filepath.Join(dir, file))
		case isStream && !parts:
			err = restoreStream(ctx, r, nc, stream)
		default: // of a later release
			_, err = r.Document()
		}
		if err != nil {
			return err
		}
	}
}

func restoreFile(r *backup.Reader, name string, parts bool, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // G304: checked by the caller
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for {
		var content []byte
		if parts {
			content, err = r.Part(name)
		} else {
			content, err = r.Document()
		}
		if errors.Is(err, io.EOF) {
			return f.Sync()
		}
		if err != nil {
			return err
		}
		if _, err := f.Write(content); err != nil {
			return err
		}
		if !parts {
			return f.Sync()
		}
	}
}

// restoreStream restores the stream that an entry describes, and checks its end.
func restoreStream(ctx context.Context, r *backup.Reader, nc *nats.Conn, stream string) error {
	doc, err := r.Document()
	if err != nil {
		return err
	}
	var about natslink.StreamSnapshot
	var state struct {
		LastSeq uint64 `json:"last_seq"`
	}
	if err := json.Unmarshal(doc, &about); err != nil {
		return fmt.Errorf("%w: stream %s: %w", backup.ErrDamaged, stream, err)
	}
	if err := json.Unmarshal(about.State, &state); err != nil {
		return fmt.Errorf("%w: stream %s: %w", backup.ErrDamaged, stream, err)
	}
	next := func() ([]byte, error) { return r.Part(backupStreams + stream) }
	if err := natslink.Restore(ctx, nc, stream, about, next); err != nil {
		return err
	}
	api, err := js.New(nc)
	if err != nil {
		return err
	}
	s, err := api.Stream(ctx, stream)
	if err != nil {
		return fmt.Errorf("restored stream %s: %w", stream, err)
	}
	if got := s.CachedInfo().State.LastSeq; got < state.LastSeq {
		return fmt.Errorf("restored stream %s ends at %d, and the backup's at %d", stream, got, state.LastSeq)
	}
	return nil
}

func syncDir(path string) error {
	d, err := os.Open(path) //nolint:gosec // G304: the operator names the directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
