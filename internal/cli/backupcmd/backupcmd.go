// Package backupcmd has the commands that back up and restore a host.
package backupcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/backup"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/obs"
)

// Backup is `waybill backup`.
func Backup() *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a backup of a running host",
		Long: `Writes a backup of the host that waybill dev runs on --data-dir, while it serves: one tar file with
the run log, all other stores, the read model and the keys. Everything that the host acknowledged before
the command started is in it. The file is compared with its hashes before it gets its name.

The file contains the host's keys and the content of all runs: keep it as safe as the host. FILE must not
exist. A command that was killed leaves FILE.partial-*, which can be deleted.`,
		Example: `  waybill backup waybill.tar --data-dir .waybill`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := config.Load(cmd.LocalFlags(), os.LookupEnv); err != nil {
				return exit.With(exit.Usage, err)
			}
			f, n, err := write(cmd.Context(), dataDir, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes, verified; it has everything acknowledged before %s\n",
				args[0], n, f.At.Format(time.RFC3339Nano))
			return nil
		},
	}
	c.Flags().StringVar(&dataDir, "data-dir", ".waybill", "data directory of the running host")
	return c
}

func write(ctx context.Context, dataDir, target string) (f backup.Format, n int64, err error) {
	if _, err := os.Lstat(target); err == nil {
		return f, 0, exit.Usagef("%s exists: give the backup another name", target)
	}
	from, err := request(ctx, dataDir)
	if err != nil {
		return f, 0, err
	}
	defer func() { _ = from.Body.Close() }()
	out, err := os.CreateTemp(filepath.Dir(target), filepath.Base(target)+".partial-*")
	if err != nil {
		return f, 0, fmt.Errorf("write the backup: %w", err)
	}
	defer func() { _ = os.Remove(out.Name()) }() // after a failure
	defer func() { _ = out.Close() }()
	if n, err = io.Copy(out, from.Body); err != nil {
		return f, 0, fmt.Errorf("write the backup: %w", err)
	}
	if why := from.Trailer.Get(host.BackupError); why != "" {
		return f, 0, fmt.Errorf("the host could not write the backup: %s", why)
	}
	if err := out.Sync(); err != nil {
		return f, 0, fmt.Errorf("write the backup: %w", err)
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return f, 0, fmt.Errorf("read the backup again: %w", err)
	}
	if f, _, err = backup.Verify(out); err != nil {
		return f, 0, err
	}
	if err := publish(out.Name(), target); err != nil {
		return f, 0, fmt.Errorf("write the backup: %w", err)
	}
	return f, n, nil
}

// publish gives a file its name, and does not replace another one.
func publish(partial, target string) error {
	err := os.Link(partial, target)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without links
		err = os.Rename(partial, target)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(target))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// request asks a running host for a backup.
func request(ctx context.Context, dataDir string) (*http.Response, error) {
	if st, err := os.Stat(dataDir); err != nil || !st.IsDir() {
		return nil, exit.With(exit.NotFound, fmt.Errorf("--data-dir %s: no data directory of a host", dataDir))
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", host.BackupSocket(dataDir))
	}
	c := &http.Client{Transport: &http.Transport{DialContext: dial}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://host/backup", http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := c.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil, exit.With(exit.Unreachable, fmt.Errorf("--data-dir %s: no host of this release runs on it; start it, or copy the directory of a stopped host", dataDir))
	}
	if err != nil {
		return nil, exit.With(exit.Unreachable, fmt.Errorf("--data-dir %s: %w", dataDir, err))
	}
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		_ = res.Body.Close()
		return nil, fmt.Errorf("the host refused: %s", strings.TrimSpace(string(text)))
	}
	return res, nil
}

// Restore is `waybill restore`.
func Restore() *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Create a data directory from a backup",
		Long: `Creates --data-dir from a backup of waybill backup. It verifies the whole file first, and changes
nothing if the file is damaged. --data-dir must not exist, or be empty; it appears when everything is in
it. Then start the host on it, with the settings that it had.

Runs that were erased after the backup are there again: erase them again; the audit log of the lost host
names them. Runs that were in execution continue where the backup has them.`,
		Example: `  waybill restore waybill.tar --data-dir restored`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := config.Load(cmd.LocalFlags(), os.LookupEnv); err != nil {
				return exit.With(exit.Usage, err)
			}
			f, err := restore(cmd, args[0], dataDir)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: restored; it has everything acknowledged before %s\n", dataDir, f.At.Format(time.RFC3339Nano))
			return nil
		},
	}
	c.Flags().StringVar(&dataDir, "data-dir", "", "data directory to create")
	_ = c.MarkFlagRequired("data-dir")
	return c
}

func restore(cmd *cobra.Command, file, dataDir string) (f backup.Format, err error) {
	log, err := obs.NewLogger(cmd.ErrOrStderr(), slog.LevelError.String(), obs.FormatText)
	if err != nil {
		return f, err
	}
	in, err := os.Open(file) //nolint:gosec // G304: the operator names the file
	if errors.Is(err, fs.ErrNotExist) {
		return f, exit.With(exit.NotFound, fmt.Errorf("%s: no such file", file))
	}
	if err != nil {
		return f, err
	}
	defer func() { _ = in.Close() }()
	f, err = host.Restore(cmd.Context(), in, dataDir, log)
	if errors.Is(err, host.ErrNotEmpty) {
		return f, exit.Usagef("--data-dir %s: %v", dataDir, err)
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w", file, err)
	}
	return f, nil
}
