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

// Config says where the database is. Zero values mean what DefaultConfig says.
type Config struct {
	// URL is postgres://user:password@host:port/database?sslmode=verify-full, or
	// the same as keywords and values. It is a secret.
	URL string
	// URLFile is a file that holds the URL, instead of URL. It is read again for each
	// new connection, so that a password may be changed while the host runs.
	URLFile string
	// Schema is the schema of the control row, and the beginning of the names of the
	// others.
	Schema string
	// MaxConns is how many connections a process opens at most; one of them is kept
	// for the writer.
	MaxConns int
	// ConnectTimeout bounds how long a server may take to take a connection.
	ConnectTimeout time.Duration
	// StatementTimeout bounds a statement, and how long a transaction may lie idle.
	StatementTimeout time.Duration
	// Logger is told what an operator would want to know; nil: nobody.
	Logger *slog.Logger
}

// DefaultConfig is right for a replica that serves a few hundred reads a second.
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

// schemaName leaves room for what is added to it in a name of 63 bytes, and needs
// no quotes.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)

// Validate names everything that is wrong with the configuration, and nothing that
// is secret.
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
	for what, d := range map[string]time.Duration{"connect timeout": c.ConnectTimeout, "statement timeout": c.StatementTimeout} {
		if d < time.Millisecond {
			errs = append(errs, fmt.Errorf("postgres: %s %s: must be positive (try 10s)", what, d))
		}
	}
	return errors.Join(errs...)
}

// parse reads the URL. What the driver says about a bad one quotes it, so only the
// kind of error is passed on.
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
	// A caller that gives up cancels its statement; the connection stays.
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
