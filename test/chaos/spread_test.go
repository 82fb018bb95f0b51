package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/test/chaos/journal"
	"waybill.dev/waybill/test/harness"
)

// lease is how long a run stays with a silent process.
const lease = time.Second

// spread is a host of several processes, with clients and their journal.
type spread struct {
	*harness.Host
	journal *journal.Journal
	r       *rand.Rand
}

func newSpread(t *testing.T, o harness.Options) *spread {
	t.Helper()
	if os.Getenv("WAYBILL") == "" {
		t.Skip("SKIPPED, needs a host of several processes: run `make spread` or `make faults`")
	}
	o.Args = append(o.Args, "--lease", lease.String())
	if dir := os.Getenv("FAULT_LOGS"); dir != "" { // the host's whole output; a failed test shows only its end
		f, err := os.Create(filepath.Join(dir, t.Name()+".log"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		o.Output = f
	}
	s := &spread{Host: harness.StartWith(t, o), journal: journal.New(), r: harness.Seed(t)}
	journal.Deploy(t, s.Host)
	return s
}

// under runs clients while a fault happens, then checks their journal.
func (s *spread) under(t *testing.T, happens func()) {
	t.Helper()
	stop := s.journal.Load(t, s.Host, 3, 2)
	wait(t, time.Second)
	happens()
	wait(t, 2*time.Second)
	stop() // the clients' runs must end before the next test
	s.whole(t)
	s.journal.Check(t, s.Host)
	s.journal.CheckFrames(t, journal.Frames(t, s.NATS))
	require.Zero(t, s.lost(t), "nothing is ever deleted from the log")
}

// lost counts the records missing from the log, as its leader has it.
func (s *spread) lost(t *testing.T) uint64 {
	t.Helper()
	nc, err := nats.Connect(s.NATS)
	require.NoError(t, err)
	defer nc.Close()
	api, err := js.New(nc)
	require.NoError(t, err)
	st, err := api.Stream(t.Context(), subject.Stream)
	require.NoError(t, err)
	state := st.CachedInfo().State
	return state.LastSeq - state.Msgs
}

// wholeWithin is how long a host may take to serve again once all of its processes run.
const wholeWithin = 2 * time.Minute

// whole waits until both gateways answer, and runs workflows through all services.
func (s *spread) whole(t *testing.T) {
	t.Helper()
	began := time.Now()
	for {
		err := s.serves(t.Context())
		if err == nil {
			t.Logf("serving again after %s", time.Since(began).Round(time.Millisecond))
			return
		}
		require.Less(t, time.Since(began), wholeWithin, "the host does not serve again: %v", err)
		wait(t, 100*time.Millisecond)
	}
}

// serves returns an error if a part of the host does not serve.
func (s *spread) serves(ctx context.Context) error {
	c := s.Client(journal.Key)
	c.HTTP.Timeout = 10 * time.Second
	for range 10 {
		c.HTTP.CloseIdleConnections() // switch to the next gateway
		a, err := c.Do(ctx, http.MethodPost, "/v1/runs", `{"workflowId":"chaos-one"}`)
		if err != nil {
			return err
		}
		if a.Status != http.StatusCreated {
			return fmt.Errorf("create: %d %s", a.Status, a.Body)
		}
		var v struct{ RunID string }
		if err := a.JSON(&v); err != nil {
			return err
		}
		if _, err := c.Finish(ctx, v.RunID); err != nil {
			return err
		}
	}
	return nil
}

// names returns the processes with these name prefixes; no prefix means all.
func (s *spread) names(t *testing.T, prefixes ...string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir(), "*.pid"))
	require.NoError(t, err)
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".pid")
		if len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			names = append(names, name)
		}
	}
	require.NotEmpty(t, names)
	return names
}

func (s *spread) any(t *testing.T, prefixes ...string) string {
	t.Helper()
	names := s.names(t, prefixes...)
	return names[s.r.IntN(len(names))]
}

// signal sends a signal to a process, which may have just ended.
func (s *spread) signal(t *testing.T, name string, sig syscall.Signal) {
	t.Helper()
	_ = syscall.Kill(s.pid(t, name), sig)
}

func (s *spread) pid(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir(), name+".pid"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	return pid
}

// cut cuts the links between pairs of processes, and opens all others.
func (s *spread) cut(t *testing.T, pairs ...[2]string) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# %d\n", time.Now().UnixNano()) // a unique first line, so that the file changes
	for _, p := range pairs {
		fmt.Fprintln(&b, p[0], p[1])
	}
	file := filepath.Join(s.Dir(), "cut")
	require.NoError(t, os.WriteFile(file+".new", []byte(b.String()), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
	require.Eventually(t, func() bool {
		done, err := os.ReadFile(file + ".done")
		return err == nil && string(done) == b.String()
	}, 30*time.Second, 5*time.Millisecond)
}

// between returns all pairs of the two lists.
func between(some, others []string) (pairs [][2]string) {
	for _, a := range some {
		for _, b := range others {
			if a != b {
				pairs = append(pairs, [2]string{a, b})
			}
		}
	}
	return pairs
}

// Any process of a host may die at any time, NATS included: everything acknowledged is there once
// and continues.
func TestKillOne_LosesNothingAcknowledgedAndDoublesNothing(t *testing.T) {
	s := newSpread(t, harness.Options{})
	killed := map[string]int{}
	began := time.Now()
	s.under(t, func() {
		for range kills(t) {
			// A cluster needs seconds to elect a leader. With more frequent kills there would be no
			// work in between.
			wait(t, time.Duration(20+s.r.IntN(1980))*time.Millisecond)
			name := s.any(t)
			s.signal(t, name, syscall.SIGKILL)
			killed[strings.TrimRight(name, "012")]++
		}
	})
	t.Logf("killed %v in %s", killed, time.Since(began).Round(time.Second))
}

func create(t *testing.T, c *harness.Client, body string) *harness.Answer {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", body)
	require.NoError(t, err)
	return a
}

func runID(t *testing.T, a *harness.Answer) string {
	t.Helper()
	var v struct{ RunID string }
	require.NoError(t, json.Unmarshal(a.Body, &v))
	return v.RunID
}
