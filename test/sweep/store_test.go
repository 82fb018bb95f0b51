package sweep

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver of the read model's file

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/protocol/subject"
)

// overNATS reads the part of the run log that a tenant may read.
func (r *rig) overNATS() {
	r.t.Helper()
	const tenant = "acme"
	nc, err := nats.Connect(r.host.NATS, nats.UserInfo(tenant, apiKey), nats.CustomInboxPrefix(natsperm.Reader{User: tenant}.Inbox()))
	require.NoError(r.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(r.t, err)
	ctx, cancel := context.WithTimeout(r.t.Context(), 60*time.Second)
	defer cancel()
	cons, err := js.Consumer(ctx, subject.Stream, subject.Consumer(tenant, subject.DefaultConsumer))
	require.NoError(r.t, err)
	frames := 0
	for waiting := uint64(1); waiting > 0; {
		m, err := cons.Next(jetstream.FetchMaxWait(10 * time.Second))
		require.NoError(r.t, err)
		require.NoError(r.t, m.Ack())
		r.stored("NATS", m.Subject(), m.Headers(), m.Data())
		md, err := m.Metadata()
		require.NoError(r.t, err)
		waiting = md.NumPending
		frames++
	}
	require.Greater(r.t, frames, 2*len(r.runs), "a run has a start and an end")
	notes := r.all["NATS headers"].String()
	for _, p := range r.noted {
		r.prove(p.batch, notes, p.place)
	}
}

// stored records a NATS message, each part separately.
func (r *rig) stored(where, subject string, header nats.Header, data []byte) {
	r.add(where+" subjects", []byte(subject))
	for name, values := range header {
		r.add(where+" headers", fmt.Append(nil, name, ": ", values))
	}
	r.add(where, data)
}

// disk reads the remaining files unchanged, then every message of every stream, bucket and object
// store, and every row of the read model.
func (r *rig) disk() {
	r.t.Helper()
	require.NoError(r.t, filepath.WalkDir(r.host.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // G122: the test's own directory
		r.add("disk: "+filepath.Base(path), content)
		r.add("disk: names", []byte(path))
		return err
	}))
	r.streams()
	r.rows()
}

func (r *rig) streams() {
	r.t.Helper()
	srv, err := natsd.Start(r.t.Context(), natsd.Config{Dir: filepath.Join(r.host.Dir(), "nats"), Log: slog.New(slog.DiscardHandler)}, "sweep")
	require.NoError(r.t, err)
	defer srv.Stop()
	nc, err := srv.Connect("sweep")
	require.NoError(r.t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(r.t, err)
	ctx, cancel := context.WithTimeout(r.t.Context(), 60*time.Second)
	defer cancel()
	names, messages := 0, 0
	streams := js.StreamNames(ctx)
	for name := range streams.Name() {
		names++
		s, err := js.Stream(ctx, name)
		require.NoError(r.t, err)
		state := s.CachedInfo().State
		for seq := state.FirstSeq; seq <= state.LastSeq && state.Msgs > 0; seq++ {
			m, err := s.GetMsg(ctx, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue // replaced by a later value of the key
			}
			require.NoError(r.t, err)
			messages++
			r.stored("NATS store "+name, m.Subject, m.Header, m.Data)
		}
	}
	require.NoError(r.t, streams.Err())
	require.GreaterOrEqual(r.t, names, 5, "the run log, three buckets and the assets")
	require.Greater(r.t, messages, 2*len(r.runs))
}

func (r *rig) rows() {
	r.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(r.host.Dir(), "waybill.db"))
	require.NoError(r.t, err)
	defer func() { _ = db.Close() }()
	var tables []string
	names, err := db.QueryContext(r.t.Context(), `SELECT name FROM sqlite_master WHERE type = 'table'`)
	require.NoError(r.t, err)
	for names.Next() {
		var name string
		require.NoError(r.t, names.Scan(&name))
		tables = append(tables, name)
	}
	require.NoError(r.t, names.Err())
	n := 0
	for _, table := range tables {
		n += r.table(db, table)
	}
	require.Greater(r.t, n, 2*len(r.runs))
}

func (r *rig) table(db *sql.DB, table string) (n int) {
	r.t.Helper()
	rows, err := db.QueryContext(r.t.Context(), `SELECT * FROM "`+table+`"`) //nolint:gosec // G202: a name out of the file itself
	require.NoError(r.t, err)
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	require.NoError(r.t, err)
	for rows.Next() {
		n++
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		require.NoError(r.t, rows.Scan(values...))
		var row bytes.Buffer
		for _, v := range values {
			switch v := (*v.(*any)).(type) {
			case []byte:
				row.Write(v)
			default:
				fmt.Fprint(&row, v)
			}
			row.WriteByte('\n')
		}
		r.add("rows of "+table, row.Bytes())
	}
	require.NoError(r.t, rows.Err())
	return n
}
