package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/postgres"
)

func isMoved(err error) bool    { return errors.Is(err, store.ErrMoved) }
func isNotFound(err error) bool { return errors.Is(err, store.ErrNotFound) }

func TestConfig_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	const url = "postgres://u:hunter2@db/x"
	for want, cfg := range map[string]postgres.Config{
		"":                        {URL: url},
		"either the URL":          {},
		"or a file":               {URL: url, URLFile: "x"},
		"no such file":            {URLFile: "/nonexistent"},
		"cannot be read":          {URL: "postgres://u:hunter2@db:port/x"},
		"URL of the database":     {URL: "postgres://u:hunter2@db/x?sslmode=hunter2"},
		`schema "a-b"`:            {URL: url, Schema: "a-b"},
		`schema "pg_x"`:           {URL: url, Schema: "pg_x"},
		"need 2 at least":         {URL: url, MaxConns: 1},
		"statement timeout -1s":   {URL: url, StatementTimeout: -time.Second},
		"connect timeout 1ns: mu": {URL: url, ConnectTimeout: 1},
	} {
		err := cfg.Validate()
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunter2")
		_, operr := postgres.Open(t.Context(), cfg)
		require.EqualError(t, operr, err.Error())
	}
}

func TestConfig_HidesItsURL(t *testing.T) {
	t.Parallel()
	cfg := postgres.DefaultConfig()
	cfg.URL = "postgres://u:hunter2@db/x"
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("configured", "store", cfg)
	fmt.Fprintf(&out, "%v %+v %#v %s %q", cfg, cfg, cfg, cfg, cfg)
	require.NotContains(t, out.String(), "hunter2")
	require.Contains(t, out.String(), "8 connections")
}

// A password may be changed in the file while the host runs.
func TestURLFile_IsReadForEachConnection(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	execute(t, cfg, `CREATE ROLE {schema} LOGIN PASSWORD 'first word'; GRANT CREATE ON DATABASE postgres TO {schema}`)
	file := filepath.Join(t.TempDir(), "url")
	write := func(password string) {
		url := fmt.Sprintf("host=%s user=%s dbname=postgres password='%s'\n", server(t).Dir(), cfg.Schema, password)
		require.NoError(t, os.WriteFile(file, []byte(url), 0o600))
	}
	var out bytes.Buffer
	write("wrong word")
	s := open(t, postgres.Config{
		URLFile:  file,
		Schema:   cfg.Schema,
		MaxConns: 2,
		Logger:   slog.New(slog.NewTextHandler(&out, nil)),
	})
	_, err := s.Tail(t.Context())
	require.ErrorContains(t, err, "password authentication failed")
	write("first word")
	_, again := s.Tail(t.Context())
	require.NoError(t, again, "no more than another try")
	require.NoError(t, s.Apply(t.Context(), batch(12, 3)))
	for _, secret := range []string{"wrong word", "first word", postgrestest.Password} {
		require.NotContains(t, err.Error(), secret)
		require.NotContains(t, out.String(), secret)
	}
	require.Contains(t, out.String(), "trying again")
}
