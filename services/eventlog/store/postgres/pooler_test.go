package postgres_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/services/eventlog/store/postgres"
)

// pooled starts pgbouncer in front of the shared server, and returns the URL through it.
func pooled(t *testing.T, settings string) (url string) {
	t.Helper()
	to := server(t)
	program := "/usr/sbin/pgbouncer"
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		program = path
	} else if _, err := os.Stat(program); err != nil {
		postgrestest.Missing(t, "pgbouncer is not installed")
	}
	dir, err := os.MkdirTemp("", "waybill-pgb-") //nolint:usetesting // short: it is the path of a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // G302: pgbouncer runs as another user
	ini := filepath.Join(dir, "ini")
	require.NoError(t, os.WriteFile(ini, fmt.Appendf(nil, `[databases]
* = host=%s user=waybill password='%s'
[pgbouncer]
listen_port = 5432
unix_socket_dir = %s
auth_type = any
default_pool_size = 4
ignore_startup_parameters = extra_float_digits
%s
`, to.Dir(), postgrestest.Password, dir, settings), 0o644)) //nolint:gosec // G306: see above
	args := []string{ini}
	if os.Getuid() == 0 { // it refuses to run as root
		args = append([]string{"-u", "nobody"}, args...)
	}
	var said bytes.Buffer
	cmd := exec.Command(program, args...) //nolint:noctx // stopped below
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url = postgrestest.URL(dir)
	require.Eventually(t, func() bool {
		conn, err := pgx.Connect(t.Context(), url)
		return err == nil && conn.Close(t.Context()) == nil
	}, 20*time.Second, 20*time.Millisecond, "pgbouncer does not answer")
	return url
}

// A pooler that shares connections is refused, whatever the driver's mode of statements.
func TestOpen_RefusesAPoolerThatSharesConnections(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{
		"transaction":              "pool_mode = transaction",
		"transaction, in turn":     "pool_mode = transaction\nserver_round_robin = 1\nmin_pool_size = 3",
		"transaction, two in turn": "pool_mode = transaction\nserver_round_robin = 1\nmin_pool_size = 2\ndefault_pool_size = 2",
		"transaction, a pool of 1": "pool_mode = transaction\ndefault_pool_size = 1",
		"statement":                "pool_mode = statement",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pooled(t, settings)
			for _, mode := range []string{"", "&default_query_exec_mode=exec"} {
				cfg := config(t)
				cfg.URL = url + mode
				_, err := postgres.Open(within(t), cfg)
				require.ErrorContains(t, err, "pool_mode = session")
				require.NotContains(t, err.Error(), postgrestest.Password)
			}
		})
	}
}

func TestOpen_WorksThroughAPoolerOfSessions(t *testing.T) {
	t.Parallel()
	url := pooled(t, "pool_mode = session\ndefault_pool_size = 20")
	cfg := config(t)
	cfg.URL = url
	s := open(t, cfg)
	require.NoError(t, s.Apply(within(t), batch(12, 3)))
	require.NoError(t, use(t, s, batch(12, 3).Runs[0].Key))
}
