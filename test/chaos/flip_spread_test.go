package chaos

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// A bit turns in the file that one NATS server of three writes, which then dies: when it is back, and
// when it leads, all that was acknowledged is there as it was.
func TestFault_ABitFlipsInTheFileOfOneNATSServer(t *testing.T) {
	s := newSpread(t, harness.Options{})
	s.under(t, func() {
		for range rounds(t) {
			for _, name := range s.names(t, "nats") {
				wait(t, 2*time.Second) // for others to have what it has
				s.signal(t, name, syscall.SIGSTOP)
				files := s.files(t, name)
				s.turn(t, files[len(files)-1])
				s.signal(t, name, syscall.SIGKILL)
				wait(t, 3*lease)
			}
		}
	})
	for _, name := range s.names(t, "nats") {
		s.lead(t, name)
		s.journal.CheckFrames(t, journal.Frames(t, s.NATS))
	}
}

// files are those of a server's part of the log, the oldest first. They are named by number.
func (s *spread) files(t *testing.T, server string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir(), server, "jetstream", "[$]G", "streams", subject.Stream, "msgs", "*.blk"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return files
}

// turn turns a bit in the middle of a file.
func (s *spread) turn(t *testing.T, file string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	require.NoError(t, err)
	info, err := f.Stat()
	require.NoError(t, err)
	at := info.Size()/4 + s.r.Int64N(info.Size()/2)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, at)
	require.NoError(t, err)
	b[0] ^= 1 << s.r.IntN(8)
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	t.Logf("%s: a bit turned at %d of %d bytes", file, at, info.Size())
}

// lead makes a server the leader of the log. It asks for that ever less often: one that still gets
// what it lacks has to begin anew with each leader.
func (s *spread) lead(t *testing.T, server string) {
	t.Helper()
	nc, err := nats.Connect(s.NATS)
	require.NoError(t, err)
	defer nc.Close()
	api, err := js.New(nc)
	require.NoError(t, err)
	leader, pause := "", 100*time.Millisecond
	for deadline := time.Now().Add(wholeWithin); leader != server; {
		late := time.Now().After(deadline)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if st, err := api.Stream(ctx, subject.Stream); err == nil && st.CachedInfo().Cluster != nil {
			leader = st.CachedInfo().Cluster.Leader
		}
		if leader != server {
			require.False(t, late, "%s does not lead, but %s", server, leader)
			_, _ = nc.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+subject.Stream, fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, server))
			pause = min(2*pause, 15*time.Second)
			wait(t, pause)
		}
		cancel()
	}
}

// Records that a server has long had stand in its file alone, and in no log of what is new: what it
// loses of them the others do not give it again. As long as a whole one leads all is there. When the other does,
// it is seen that records are lost. With an empty disk it gets all from the others.
func TestFault_ABitFlipsInOldRecordsOfOneNATSServer(t *testing.T) {
	s := newSpread(t, harness.Options{})
	servers := s.names(t, "nats")
	s.under(t, func() {
		for _, name := range servers { // when they end in order, they make an end to their logs of what is new
			wait(t, 2*time.Second)
			s.signal(t, name, syscall.SIGTERM)
			wait(t, 3*lease)
		}
	})
	bad := s.any(t, "nats")
	s.signal(t, bad, syscall.SIGSTOP)
	s.turn(t, s.files(t, bad)[0])
	s.signal(t, bad, syscall.SIGKILL)
	s.whole(t)
	whole := ""
	for _, name := range servers {
		s.lead(t, name)
		n := s.lost(t)
		t.Logf("%s, with a bit turned: %t, has lost %d records", name, name == bad, n)
		if name != bad {
			whole = name
			require.Zero(t, n)
			s.journal.CheckFrames(t, journal.Frames(t, s.NATS))
		}
	}
	s.lead(t, whole)
	s.renew(t, bad)
	s.lead(t, bad)
	require.Zero(t, s.lost(t))
	s.journal.CheckFrames(t, journal.Frames(t, s.NATS))
}

// renew takes from a server all that it has: the others give it what they have.
func (s *spread) renew(t *testing.T, server string) {
	t.Helper()
	s.signal(t, server, syscall.SIGSTOP)
	require.NoError(t, os.RemoveAll(filepath.Join(s.Dir(), server, "jetstream")))
	s.signal(t, server, syscall.SIGKILL)
	nc, err := nats.Connect(s.NATS)
	require.NoError(t, err)
	defer nc.Close()
	api, err := js.New(nc)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		st, err := api.Stream(t.Context(), subject.Stream)
		if err != nil || st.CachedInfo().Cluster == nil {
			return false
		}
		current := 0
		for _, r := range st.CachedInfo().Cluster.Replicas {
			if r.Current && !r.Offline && r.Lag == 0 {
				current++
			}
		}
		return current == 2
	}, wholeWithin, 200*time.Millisecond)
}
