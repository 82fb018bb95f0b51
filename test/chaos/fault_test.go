package chaos

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/test/harness"
)

// cuttable makes the launcher put a proxy before each process.
const cuttable = "SPREAD_CUTTABLE=1"

// rounds is how often each fault happens; FAULT_ROUNDS overrides it.
func rounds(t *testing.T) int {
	t.Helper()
	v := os.Getenv("FAULT_ROUNDS")
	if v == "" {
		return 2
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err)
	return n
}

// A process that hangs for longer than the lease loses its runs to others and learns it only when
// it continues.
func TestFault_AProcessHangsForLongerThanTheLease(t *testing.T) {
	s := newSpread(t, harness.Options{})
	s.under(t, func() {
		for range rounds(t) {
			for _, kind := range []string{"dispatcher", "acceptor", "eventlog", "gateway", "redactor", "nats"} {
				name := s.any(t, kind)
				s.signal(t, name, syscall.SIGSTOP)
				wait(t, 2*lease+time.Duration(s.r.IntN(1000))*time.Millisecond)
				s.signal(t, name, syscall.SIGCONT)
				wait(t, lease)
			}
		}
	})
}

// A cut link reports no error: its bytes arrive once it is open again.
func TestFault_TheWayBetweenAnyTwoIsCut(t *testing.T) {
	s := newSpread(t, harness.Options{Env: []string{cuttable}})
	s.under(t, func() {
		for range rounds(t) {
			all := s.names(t)
			a, b := all[s.r.IntN(len(all))], all[s.r.IntN(len(all))]
			service, node := s.any(t, "dispatcher", "acceptor", "eventlog", "gateway"), s.any(t, "nats")
			for name, pairs := range map[string][][2]string{
				"any two":                         between([]string{a}, []string{b}),
				"a service and a server of NATS":  between([]string{service}, []string{node}),
				"a service and NATS":              between([]string{service}, s.names(t, "nats")),
				"a server of NATS and the others": between([]string{node}, s.names(t, "nats")),
				"a server of NATS and everybody":  between([]string{node}, all),
			} {
				t.Log("cut: ", name, " ", pairs)
				s.cut(t, pairs...)
				wait(t, 3*lease+time.Duration(s.r.IntN(5000))*time.Millisecond)
				s.cut(t)
				wait(t, lease)
			}
		}
	})
}

// The leaders of the log and of the queue change while all servers live.
func TestFault_LeadersChange(t *testing.T) {
	s := newSpread(t, harness.Options{})
	nc, err := nats.Connect(s.NATS)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	changed := 0
	s.under(t, func() {
		for range 4 * rounds(t) {
			for _, of := range []string{
				"STREAM.LEADER.STEPDOWN.WAYBILL_RUNS", "CONSUMER.LEADER.STEPDOWN.WAYBILL_RUNS.dispatchers",
				"STREAM.LEADER.STEPDOWN.KV_waybill_idempotency", "STREAM.LEADER.STEPDOWN.KV_waybill_workflows",
			} {
				if _, err := nc.Request("$JS.API."+of, nil, 5*time.Second); err == nil { // on an error there is no leader now
					changed++
				}
				wait(t, time.Duration(s.r.IntN(600))*time.Millisecond)
			}
		}
	})
	require.Positive(t, changed)
	t.Logf("%d leaders stepped down", changed)
}

// The read model's database crashes and restarts.
func TestFault_PostgreSQLRestarts(t *testing.T) {
	if os.Getenv("WAYBILL") == "" {
		t.Skip("SKIPPED, needs a host of several processes: run `make spread` or `make faults`")
	}
	server := postgrestest.Start(t)
	file := t.TempDir() + "/url"
	require.NoError(t, os.WriteFile(file, []byte(server.URL()), 0o600))
	s := newSpread(t, harness.Options{Env: []string{"SPREAD_POSTGRES=" + file}})
	s.under(t, func() {
		for i := range 2 * rounds(t) {
			require.NoError(t, server.Stop([]string{"immediate", "fast"}[i%2]))
			wait(t, time.Duration(s.r.IntN(3000))*time.Millisecond)
			require.NoError(t, server.Restart())
			wait(t, 2*time.Second)
		}
	})
}

// The disk of one of three servers is full: the others continue, and the full one catches up when
// there is space.
func TestFault_TheDiskOfOneNATSServerIsFull(t *testing.T) {
	s, dir := mounted(t, func(t *testing.T, dir string) { mountSmall(t, dir, "size=48m") })
	s.under(t, func() {
		for range rounds(t) {
			fill(t, dir+"/filler")
			wait(t, 4*time.Second)
			require.NoError(t, os.Remove(dir+"/filler"))
			wait(t, 2*time.Second)
		}
	})
}

// The disk of a NATS server blocks writes for seconds, as during a volume migration.
func TestFault_TheDiskOfOneNATSServerHangs(t *testing.T) {
	s, dir := mounted(t, mountImage)
	s.under(t, func() {
		for range rounds(t) {
			for _, d := range []time.Duration{200 * time.Millisecond, time.Second, 5 * time.Second} {
				freeze(t, dir)
				wait(t, d)
				thaw(t, dir)
				wait(t, 300*time.Millisecond)
			}
		}
	})
}

// mounted is a host with one NATS server on its own file system.
func mounted(t *testing.T, mount func(t *testing.T, dir string)) (s *spread, dir string) {
	t.Helper()
	if os.Getenv("WAYBILL") == "" {
		t.Skip("SKIPPED, needs a host of several processes: run `make spread` or `make faults`")
	}
	home := t.TempDir()
	dir = home + "/data/nats1"
	require.NoError(t, os.MkdirAll(dir, 0o700))
	mount(t, dir)
	return newSpread(t, harness.Options{Dir: home}), dir
}
