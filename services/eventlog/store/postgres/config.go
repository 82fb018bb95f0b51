package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config locates the database. Zero values mean those of DefaultConfig.
type Config struct {
	// URL is postgres://user:password@host:port/database?sslmode=verify-full, or the same as
	// keywords and values. It is a secret.
	URL string
	// URLFile is a file with the URL, instead of URL. It is read for each new connection, so that a
	// password can change while the host runs.
	URLFile string
	// Schema is the schema of the control row, and the prefix of the other schemas' names.
	Schema string
	// MaxConns limits the connections of a process; one of them is reserved for the writer.
	MaxConns int
	// ConnectTimeout limits the time to establish a connection.
	ConnectTimeout time.Duration
	// StatementTimeout limits a statement, and how long a transaction may be idle.
	StatementTimeout time.Duration
	// Logger receives operational messages; nil disables them.
	Logger *slog.Logger
}

// DefaultConfig suits a replica that serves a few hundred reads per second.
func DefaultConfig() Config {
	return Config{
		Schema: "waybill", MaxConns: 8, ConnectTimeout: 5 * time.Second, StatementTimeout: 10 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	}
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	if c.Schema == "" {
		c.Schema = d.Schema
	}
	if c.MaxConns == 0 {
		c.MaxConns = d.MaxConns
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = d.ConnectTimeout
	}
	if c.StatementTimeout == 0 {
		c.StatementTimeout = d.StatementTimeout
	}
	if c.Logger == nil {
		c.Logger = d.Logger
	}
	return c
}

// schemaName leaves room for suffixes in a name of 63 bytes, and needs no quotes.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)

// Validate returns all errors of the configuration, without secrets.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if (c.URL == "") == (c.URLFile == "") {
		errs = append(errs, errors.New("postgres: give either the URL of the database or a file that holds it"))
	} else if _, err := c.parse(); err != nil {
		errs = append(errs, err)
	}
	if !schemaName.MatchString(c.Schema) || strings.HasPrefix(c.Schema, "pg_") {
		errs = append(errs, fmt.Errorf("postgres: schema %q: want at most 32 of a-z, 0-9 and _ (try waybill)", c.Schema))
	}
	if c.MaxConns < 2 {
		errs = append(errs, fmt.Errorf("postgres: %d connections: need 2 at least, one of them to write", c.MaxConns))
	}
	for what, d := range map[string]time.Duration{
		"connect timeout":   c.ConnectTimeout,
		"statement timeout": c.StatementTimeout,
	} {
		if d < time.Millisecond {
			errs = append(errs, fmt.Errorf("postgres: %s %s: must be positive (try 10s)", what, d))
		}
	}
	return errors.Join(errs...)
}

// parse parses the URL. The driver's error may quote it, so only the kind of error is passed on.
func (c Config) parse() (*pgxpool.Config, error) {
	url := c.URL
	if c.URLFile != "" {
		b, err := os.ReadFile(c.URLFile)
		if err != nil {
			return nil, fmt.Errorf("postgres: file of the URL: %w", err)
		}
		url = strings.TrimSpace(string(b))
	}
	pc, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("postgres: the URL of the database cannot be read (try postgres://user:password@host:5432/database?sslmode=verify-full); " +
			"certificates that it names must exist")
	}
	cc := pc.ConnConfig
	cc.ConnectTimeout = c.ConnectTimeout
	if cc.ValidateConnect == nil { // after a failover the old primary may still answer
		cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	// A caller that gives up cancels its statement; the connection stays open.
	cc.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: time.Second}
	}
	return pc, nil
}

// String hides the URL.
func (c Config) String() string {
	return fmt.Sprintf("postgres store in schema %s, %d connections", c.Schema, c.MaxConns)
}

// GoString hides the URL.
func (c Config) GoString() string { return c.String() }

// LogValue hides the URL.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }
