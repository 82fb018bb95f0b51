package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/postgres"
	"waybill.dev/waybill/services/eventlog/store/storetest"
)

// shared is the server of all tests that do not stop it.
var shared struct {
	once sync.Once
	*postgrestest.Server
	why string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.Server != nil {
		shared.Remove()
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code) //nolint:forbidigo // a TestMain ends the process
}

func server(t testing.TB) *postgrestest.Server {
	t.Helper()
	shared.once.Do(func() { shared.Server, shared.why = postgrestest.New() })
	if shared.Server == nil {
		postgrestest.Missing(t, shared.why)
	}
	return shared.Server
}

var schemas atomic.Int64

// config is that of a store in a schema of its own.
func config(t testing.TB) postgres.Config {
	t.Helper()
	return postgres.Config{URL: server(t).URL(), Schema: fmt.Sprintf("test_%d", schemas.Add(1)), MaxConns: 4}
}

func open(t testing.TB, cfg postgres.Config) store.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// execute runs a statement outside the stores. {schema} and {tables} are replaced by the schemas of
// the control row and of the tables.
func execute(t testing.TB, cfg postgres.Config, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), cfg.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	var generation int64
	if strings.Contains(statement, "{tables}") {
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT generation FROM "+cfg.Schema+".control").Scan(&generation))
	}
	tables := fmt.Sprintf("%s_g%d", cfg.Schema, generation)
	_, err = conn.Exec(t.Context(), strings.NewReplacer("{schema}", cfg.Schema, "{tables}", tables).Replace(statement), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestStore_KeepsTheContract(t *testing.T) {
	t.Parallel()
	server(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, config(t)) })
}

// ANALYZE copies no words: erasure does not reach statistics.
func TestStore_KeepsNoStatisticsOfWords(t *testing.T) {
	t.Parallel()
	server(t)
	cfg := config(t)
	s := open(t, cfg)
	b := store.Batch{Tail: store.Tail{Pos: 30, Hash: "h"}}
	for n := range 300 {
		key := store.Key{Tenant: "acme", RunID: fmt.Sprint("r", n)}
		b.Texts = append(b.Texts, store.Text{Key: key, Words: []string{"frequentword"}})
	}
	_, err := s.Tail(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), b))
	execute(t, cfg, `ANALYZE {tables}.texts`)
	execute(t, cfg, `DO $$ BEGIN
		ASSERT EXISTS (SELECT FROM pg_stats WHERE schemaname = '{tables}' AND tablename = 'texts' AND attname = 'run_id');
		ASSERT NOT EXISTS (SELECT FROM pg_stats WHERE schemaname = '{tables}' AND tablename = 'texts' AND attname = 'words');
	END $$`)
}

func TestStore_MayBeSharedByReplicas(t *testing.T) {
	t.Parallel()
	server(t)
	storetest.RunShared(t, func(t *testing.T) func() store.Store {
		cfg := config(t)
		return func() store.Store { return open(t, cfg) }
	})
}
