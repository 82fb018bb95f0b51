package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config locates the database, and the bucket.
type Config struct {
	// URLFile is a file with the URL of the database, which is a secret. It is read for each new
	// connection, so that a password can change while the process runs.
	URLFile string
	// Schema has the tables.
	Schema string
	// MaxConns limits the connections of a process.
	MaxConns int
	// Bucket has the contents of runs; nil stores them in the database.
	Bucket Bucket
	// Timeout limits a statement, the wait for another writer, and how long a transaction may be silent before
	// the server ends it; 0 is 30 seconds.
	Timeout time.Duration
	// Logger gets a message when the bucket is not that of the database; nil discards it.
	Logger *slog.Logger
}

// Defaults of a Config.
const (
	DefaultSchema   = "waybill_cold"
	DefaultMaxConns = 4
)

const (
	connectTimeout = 5 * time.Second
	defaultTimeout = 30 * time.Second
)

// schemaName needs no quotes.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Check returns all errors in the values, joined. It does not read the file.
func (c Config) Check() error {
	var errs []error
	if !schemaName.MatchString(c.Schema) || strings.HasPrefix(c.Schema, "pg_") {
		errs = append(errs, fmt.Errorf("schema %q: want at most 63 of a-z, 0-9 and _, such as %s", c.Schema, DefaultSchema))
	}
	if c.MaxConns < 1 {
		errs = append(errs, fmt.Errorf("%d connections: want 1 at least", c.MaxConns))
	}
	return errors.Join(errs...)
}

// Validate is Check, and reads the file. Errors have no secrets.
func (c Config) Validate() error {
	_, err := c.parse()
	return errors.Join(c.Check(), err)
}

// parse reads the URL. The driver's error may quote it.
func (c Config) parse() (*pgxpool.Config, error) {
	b, err := os.ReadFile(c.URLFile)
	if err != nil {
		return nil, fmt.Errorf("file of the database's URL: %w", err)
	}
	pc, err := pgxpool.ParseConfig(strings.TrimSpace(string(b)))
	if err != nil {
		return nil, errors.New("the URL of the database cannot be read (try postgres://user:password@host:5432/database?sslmode=verify-full)")
	}
	cc := pc.ConnConfig
	cc.ConnectTimeout = connectTimeout
	if cc.ValidateConnect == nil { // after a failover the old primary may still answer
		cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	// No prepared statements: a pooler may hand each transaction to another session.
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	pc.MaxConns, pc.MinConns, pc.MinIdleConns = int32(c.MaxConns), 0, 0 //nolint:gosec // G115: a number of connections
	pc.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
		fresh, err := c.parse()
		if err == nil {
			cc.User, cc.Password = fresh.ConnConfig.User, fresh.ConnConfig.Password
		}
		return err
	}
	return pc, nil
}
