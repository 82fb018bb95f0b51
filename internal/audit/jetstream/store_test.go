package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/audit/jetstream"
	"waybill.dev/waybill/internal/audit/memory"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsd/natsdtest"
)

// childURL is the environment variable with the server for a child process of this test.
const childURL = "WAYBILL_TEST_AUDIT_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		if err := appendFrom(url, "child"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1) //nolint:forbidigo // this is a process of its own
		}
		return
	}
	goleak.VerifyTestMain(m, natsdtest.LeftBehind()...)
}

const (
	appenders = 4 // of a process
	each      = 40
)

func connect(url string) (*nats.Conn, error) {
	return nats.Connect(url, nats.UserInfo(natsd.HostUser, "secret"), nats.MaxReconnects(-1))
}

func newLog(ctx context.Context, nc *nats.Conn, key *audit.Key) (*audit.Log, *jetstream.Store, error) {
	store, err := jetstream.Open(ctx, nc, 1, nil)
	if err != nil {
		return nil, nil, err
	}
	cfg := audit.DefaultConfig()
	cfg.Every, cfg.Tick = 50, time.Millisecond
	return audit.New(cfg, audit.Deps{
		Store: store, Key: key, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
		Scrub: func(_ context.Context, _ string, doc []byte) ([]byte, error) { return doc, nil },
	}), store, nil
}

// appendFrom appends from several goroutines.
func appendFrom(url, name string) error {
	nc, err := connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	key, err := audit.NewKey()
	if err != nil {
		return err
	}
	log, _, err := newLog(context.Background(), nc, key)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, appenders)
	for i := range appenders {
		wg.Go(func() {
			for n := range each {
				e := audit.Entry{Action: "run.cancelled", Actor: fmt.Sprintf("%s-%d", name, i), Target: fmt.Sprintf("runs/%d", n)}
				errs[i] = errors.Join(errs[i], log.Record(context.Background(), "acme", e))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func serve(t *testing.T, dir string) *natsd.Server {
	t.Helper()
	srv, err := natsd.Start(t.Context(), natsd.Config{
		Dir:  dir,
		Sync: true,
		Addr: "127.0.0.1:0",
		Log:  slog.New(slog.DiscardHandler),
	}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	return srv
}

// Eight appenders in two processes make one chain. It survives a restart of the server and a
// checkpoint of a third process.
func TestStore_HasOneChainFromManyAppenders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	srv := serve(t, dir)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+srv.Addr())
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, appendFrom(srv.Addr(), "parent"))
	require.NoError(t, cmd.Wait())
	srv.Stop()

	srv = serve(t, dir)
	nc, err := connect(srv.Addr())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	key, err := audit.NewKey()
	require.NoError(t, err)
	log, store, err := newLog(t.Context(), nc, key)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- log.Run(ctx) }()
	const all = 2 * appenders * each
	require.Eventually(t, func() bool {
		res, err := log.Verify(t.Context(), "acme", audit.Window{})
		require.NoError(t, err)
		require.True(t, res.ChainValid, "%+v", res)
		require.EqualValues(t, all-1, res.ToSeq)
		return len(res.Checkpoints) == all/50
	}, 30*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-done)

	// Every page starts at the requested sequence, although appends have several entries.
	for from := int64(0); from < all; from += 37 {
		page, more, err := log.Page(t.Context(), "acme", from, 37)
		require.NoError(t, err)
		require.Len(t, page, int(min(37, all-from)))
		require.Equal(t, from+37 < all, more)
		require.Contains(t, string(page[0]), fmt.Sprintf(`"atSequence":%d,`, from))
	}
	page, more, err := log.Page(t.Context(), "acme", all, 10)
	require.NoError(t, err)
	require.Empty(t, page)
	require.False(t, more)

	// A changed entry in a copy of the log is found.
	copied, err := memory.Copy(t.Context(), store, "acme")
	require.NoError(t, err)
	copied.Tamper(audit.List{Tenant: "acme", Kind: audit.Entries}, func(n int, line []byte) []byte {
		if n == 100 {
			return append([]byte(nil), line[:len(line)-1]...)
		}
		return line
	})
	res, err := audit.New(audit.DefaultConfig(), audit.Deps{Store: copied, Key: key, Clock: time.Now}).Verify(t.Context(), "acme", audit.Window{})
	require.NoError(t, err)
	require.False(t, res.ChainValid)
	require.EqualValues(t, 100, res.Anomalies[0].AtSeq)
}

func TestStore_RefusesToDelete(t *testing.T) {
	t.Parallel()
	srv := serve(t, t.TempDir())
	nc, err := connect(srv.Addr())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	store, err := jetstream.Open(t.Context(), nc, 1, nil)
	require.NoError(t, err)
	list := audit.List{Tenant: "acme", Kind: audit.Entries}
	pos, err := store.Append(t.Context(), list, 0, [][]byte{[]byte("{}")}, 0)
	require.NoError(t, err)
	_, err = store.Append(t.Context(), list, 1, [][]byte{[]byte("{}")}, 0)
	require.ErrorIs(t, err, audit.ErrConflict)

	api, err := js.New(nc)
	require.NoError(t, err)
	s, err := api.Stream(t.Context(), jetstream.Stream)
	require.NoError(t, err)
	require.Error(t, s.DeleteMsg(t.Context(), pos))
	require.Error(t, s.SecureDeleteMsg(t.Context(), pos))
	require.Error(t, s.Purge(t.Context()))
	cfg := s.CachedInfo().Config
	cfg.DenyDelete = false
	_, err = api.UpdateStream(t.Context(), cfg)
	require.Error(t, err, "the denial cannot be taken back")
	_, err = jetstream.Open(t.Context(), nc, 1, nil)
	require.NoError(t, err, "it opens again")
}

// Tenants share the positions, so the positions of one tenant have gaps.
func TestScan_StartsAtASequenceBetweenOtherTenants(t *testing.T) {
	t.Parallel()
	srv := serve(t, t.TempDir())
	nc, err := connect(srv.Addr())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	store, err := jetstream.Open(t.Context(), nc, 1, nil)
	require.NoError(t, err)
	ends, next := map[string]uint64{}, map[string]int64{}
	for i := range 60 {
		tenant := []string{"acme", "beta", "beta", "gamma"}[i%4]
		lines := make([][]byte, 1+i%3)
		for n := range lines {
			lines[n] = fmt.Appendf(nil, "%s %d", tenant, next[tenant]+int64(n))
		}
		ends[tenant], err = store.Append(t.Context(), audit.List{Tenant: tenant, Kind: audit.Entries}, next[tenant], lines, ends[tenant])
		require.NoError(t, err)
		next[tenant] += int64(len(lines))
	}
	counts, err := store.Tenants(t.Context())
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"acme": 15, "beta": 30, "gamma": 15}, counts)
	for tenant, end := range next {
		for from := range end {
			at := int64(-1)
			err := store.Scan(t.Context(), audit.List{Tenant: tenant, Kind: audit.Entries}, from, func(m *audit.Message) bool {
				if at < 0 {
					at = m.First
					require.LessOrEqual(t, m.First, from)
				}
				for _, line := range m.Lines {
					require.Equal(t, fmt.Sprintf("%s %d", tenant, at), string(line))
					at++
				}
				return true
			})
			require.NoError(t, err)
			require.Equal(t, end, at)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	srv, err := natsd.Start(b.Context(), natsd.Config{Dir: b.TempDir(), Sync: true, Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(b, err)
	defer srv.Stop()
	nc, err := srv.Connect("bench")
	require.NoError(b, err)
	defer nc.Close()
	key, err := audit.NewKey()
	require.NoError(b, err)
	log, _, err := newLog(b.Context(), nc, key)
	require.NoError(b, err)
	e := audit.Entry{
		Action:  "run.cancelled",
		Actor:   "key_1",
		Target:  "runs/run_1",
		Details: map[string]any{"status": "cancelled"},
	}
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, log.Record(b.Context(), "acme", e))
		}
	})
	b.Run("from many", func(b *testing.B) {
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				require.NoError(b, log.Record(b.Context(), "acme", e))
			}
		})
	})
	b.Run("verify", func(b *testing.B) {
		res, err := log.Verify(b.Context(), "acme", audit.Window{})
		require.NoError(b, err)
		for b.Loop() {
			_, err = log.Verify(b.Context(), "acme", audit.Window{})
			require.NoError(b, err)
		}
		b.ReportMetric(float64(res.ToSeq+1), "entries")
	})
}
