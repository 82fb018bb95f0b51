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

// lease is how long a run of a process that fell silent stays its own.
const lease = time.Second

// spread is a host in several processes, with clients at work whose journal is kept.
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
	if dir := os.Getenv("FAULT_LOGS"); dir != "" { // all that the host says, of which a failed test shows the end
		f, err := os.Create(filepath.Join(dir, t.Name()+".log"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() })
		o.Output = f
	}
	s := &spread{Host: harness.StartWith(t, o), journal: journal.New(), r: harness.Seed(t)}
	journal.Deploy(t, s.Host)
	return s
}

// under has clients at work while something happens; then what they were told is checked.
func (s *spread) under(t *testing.T, happens func()) {
	t.Helper()
	stop := s.journal.Load(t, s.Host, 3, 2)
	wait(t, time.Second)
	happens()
	wait(t, 2*time.Second)
	stop() // what the clients have begun is to be done before others are served
	s.whole(t)
	s.journal.Check(t, s.Host)
	s.journal.CheckFrames(t, journal.Frames(t, s.NATS))
	require.Zero(t, s.lost(t), "nothing is ever deleted from the log")
}

// lost counts the records that the log, as its leader has it, once had.
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

// wholeWithin is how long a host may take to serve again once all of it is there.
const wholeWithin = 2 * time.Minute

// whole waits until both gateways answer, and let runs go through all services.
func (s *spread) whole(t *testing.T) {
	t.Helper()
	began := time.Now()
	for {
		err := s.serves(t.Context())
		if err == nil {
			t.Logf("whole again after %s", time.Since(began).Round(time.Millisecond))
			return
		}
		require.Less(t, time.Since(began), wholeWithin, "the host is not whole again: %v", err)
		wait(t, 100*time.Millisecond)
	}
}

// serves says what of the host does not serve.
func (s *spread) serves(ctx context.Context) error {
	c := s.Client(journal.Key)
	c.HTTP.Timeout = 10 * time.Second
	for range 10 {
		c.HTTP.CloseIdleConnections() // the next gateway
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

// names are the processes whose names begin so; empty: all.
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

// signal sends a signal to a process, which may just have ended.
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

// cut cuts the ways between pairs of processes, and opens all others.
func (s *spread) cut(t *testing.T, pairs ...[2]string) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "# %d\n", time.Now().UnixNano()) // another text than before
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

// between are all pairs of one of some and one of others.
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

// Of a host in several processes any may die at any time, NATS as well: what was
// acknowledged is there, once, and goes on.
func TestKillOne_LosesNothingAcknowledgedAndDoublesNothing(t *testing.T) {
	s := newSpread(t, harness.Options{})
	killed := map[string]int{}
	began := time.Now()
	s.under(t, func() {
		for range kills(t) {
			// A cluster that has lost its leader needs seconds: more often, and nothing is done between.
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
