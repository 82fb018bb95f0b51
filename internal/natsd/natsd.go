// Package natsd runs a NATS server with JetStream inside the process, for the
// one-command host and for tests.
package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
)

// User may read the run events of one tenant over NATS, and nothing else.
type User struct {
	Name     string
	Password string
	Tenant   string
}

// Config sets the store and the users of the server.
type Config struct {
	// Dir is the store directory.
	Dir string
	// Sync makes OnDisk wait until writes are on disk. Without it the server flushes on a timer,
	// and a power cut may lose the last moments.
	Sync bool
	// Layout describes the records of streams; nil accepts every record that matches its
	// checksum.
	Layout Layout
	// Addr is the listen address for external clients; empty disables it.
	Addr string
	// Users may connect to Addr.
	Users []User
	// Recovery limits each start.
	Recovery Limits
	Log      *slog.Logger
}

// Limits limit the recovery of the files at a start; 0 derives a limit from their size.
type Limits struct {
	Time   time.Duration
	Memory int64
}

// HostUser is the user of the host's own connections. No tenant can have this name.
const HostUser = "=waybill"

// Server is an embedded server. Connections made with Connect outlive its
// restarts.
type Server struct {
	cfg      Config
	password string

	mu   sync.Mutex // guards the fields below
	srv  *server.Server
	disk *disk // of srv
	// unchecked are files that are checked while the server runs. suspicious makes the next start
	// check all files.
	unchecked  []blockFile
	suspicious bool
	damage     []Damage
}

// Start puts damaged files right and starts the server. It is ready when Start returns. If ctx ends,
// or the start exceeds its limits, Start returns an error, and the process must end: the server cannot
// be stopped while it recovers a stream.
func Start(ctx context.Context, cfg Config, password string) (*Server, error) {
	if cfg.Layout == nil {
		cfg.Layout = anyLayout{}
	}
	s := &Server{cfg: cfg, password: password}
	srv, err := s.launch(ctx, true)
	if err != nil {
		return nil, err
	}
	s.srv, s.disk = srv, newDisk(cfg.Dir)
	if a := srv.Addr(); a != nil && cfg.Addr != "" {
		s.cfg.Addr = a.String() // keep a random port over restarts
	}
	return s, nil
}

// run starts the server. It returns when the streams are recovered.
func (s *Server) run(log server.Logger, within time.Duration) (*server.Server, error) {
	cfg := s.cfg
	opts := &server.Options{
		ServerName: "waybill", JetStream: true, StoreDir: cfg.Dir,
		NoLog: true, NoSigs: true, DontListen: cfg.Addr == "", MaxPayload: runlog.MaxFrameBytes,
		// The limit of pending bytes per connection: a few of the largest frames. A malicious
		// reader can use all of it on each connection.
		MaxPending: 4 * runlog.MaxFrameBytes,
		// The run log does not use the memory store.
		JetStreamMaxMemory: 64 << 20,
		// The disk is the limit. The default is a share of the free space at the start, which is
		// zero if the server is reopened on a full disk.
		JetStreamMaxStore: math.MaxInt64,
	}
	if err := listen(opts, cfg.Addr); err != nil {
		return nil, err
	}
	opts.Users = []*server.User{{Username: HostUser, Password: s.password}}
	if err := admit(opts, cfg.Users); err != nil {
		return nil, fmt.Errorf("embedded nats: %w", err)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("embedded nats: %w", err)
	}
	if err := connectAccounts(srv, cfg.Users); err != nil {
		end(srv)
		return nil, fmt.Errorf("embedded nats: %w", err)
	}
	srv.SetLogger(log, false, false)
	srv.Start()
	if !srv.ReadyForConnections(within) {
		end(srv)
		return nil, fmt.Errorf("embedded nats: not ready after %s (store %s)", within, cfg.Dir)
	}
	if !srv.JetStreamEnabled() {
		end(srv)
		return nil, fmt.Errorf("embedded nats: JetStream did not start (store %s)", cfg.Dir)
	}
	// The server does this by itself only without other accounts.
	if host := srv.GlobalAccount(); !host.JetStreamEnabled() {
		if err := host.EnableJetStream(nil, nil); err != nil {
			end(srv)
			return nil, fmt.Errorf("embedded nats: JetStream did not start (store %s): %w", cfg.Dir, err)
		}
	}
	return srv, nil
}

func listen(opts *server.Options, addr string) error {
	if addr == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("nats-addr %q: want host:port, such as 127.0.0.1:4222", addr)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("nats-addr %q: port must be a number from 0 to 65535", addr)
	}
	opts.Host, opts.Port = host, n
	if n == 0 {
		opts.Port = server.RANDOM_PORT
	}
	return nil
}

// Damage returns the damage of files that was found at the last start and those before it; see
// Damaged.
func (s *Server) Damage() []Damage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.damage
}

// Addr is the listen address; empty if there is none.
func (s *Server) Addr() string { return s.cfg.Addr }

// Connect opens a connection within the process. It reconnects after a restart.
func (s *Server) Connect(name string) (*nats.Conn, error) {
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.Name(name),
		nats.UserInfo(HostUser, s.password), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.cfg.Log.Warn("NATS complains", "error", err) }))
	if err != nil {
		return nil, fmt.Errorf("connect %s to embedded nats: %w", name, err)
	}
	return nc, nil
}

// errDown: the server is not running.
var errDown = errors.New("embedded nats: the server is down")

// InProcessConn connects to the running server. It is called by package nats.
func (s *Server) InProcessConn() (net.Conn, error) {
	srv := s.current()
	if srv == nil {
		return nil, errDown
	}
	conn, err := srv.InProcessConn()
	if err != nil {
		return nil, fmt.Errorf("embedded nats: %w", err)
	}
	return conn, nil
}

func (s *Server) current() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.srv
}

// OnDisk implements natslink.OnDisk for this server. Without Config.Sync it does not wait.
func (s *Server) OnDisk(ctx context.Context, stream string, pos uint64, urgent bool) error {
	if !s.cfg.Sync {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	err := s.files().keep(within, stream, pos, urgent)
	if errors.Is(err, errDown) || errors.Is(err, ErrStorage) || err != nil && ctx.Err() == nil && within.Err() != nil {
		return fmt.Errorf("%w: %w", natslink.ErrLost, err)
	}
	return err
}

// syncTimeout is how long a sync may take before the disk counts as failed.
const syncTimeout = 10 * time.Second

func (s *Server) files() *disk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disk
}

// Stop flushes and ends the server; it returns when the files are closed.
func (s *Server) Stop() {
	s.mu.Lock()
	srv := s.srv
	s.srv = nil
	s.mu.Unlock()
	if srv != nil {
		end(srv)
	}
	s.files().close()
	if srv == nil {
		return
	}
	if err := writeSums(s.cfg.Dir); err != nil {
		s.cfg.Log.Warn("damage of the log's files until the next start cannot be found", "error", err, "dir", s.cfg.Dir)
	}
}

func end(srv *server.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}
