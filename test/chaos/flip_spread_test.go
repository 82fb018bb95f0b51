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

// A bit flips in the file that one of three NATS servers writes, and the server dies. When it is
// back, also as the leader, every acknowledged record is unchanged.
func TestFault_ABitFlipsInTheFileOfOneNATSServer(t *testing.T) {
	s := newSpread(t, harness.Options{})
	s.under(t, func() {
		for range rounds(t) {
			for _, name := range s.names(t, "nats") {
				wait(t, 2*time.Second) // time for the others to replicate
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

// files returns the files of a server's log, oldest first. They are named by number.
func (s *spread) files(t *testing.T, server string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.Dir(), server, "jetstream", "[$]G", "streams", subject.Stream, "msgs", "*.blk"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	return files
}

// turn flips a bit in the middle of a file.
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
	t.Logf("%s: a bit flipped at %d of %d bytes", file, at, info.Size())
}

// lead makes a server the leader of the log. It requests that less and less often, because a server
// that catches up starts again with each leader.
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
			require.False(t, late, "%s is not the leader, %s is", server, leader)
			_, _ = nc.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+subject.Stream, fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, server))
			pause = min(2*pause, 15*time.Second)
			wait(t, pause)
		}
		cancel()
	}
}

// A server keeps old records only in its own file, no longer in a Raft log, so the others do not
// resend lost ones. While an intact server leads, all records are there. When the damaged one
// leads, the loss is detected. With an empty disk it gets everything from the others.
func TestFault_ABitFlipsInOldRecordsOfOneNATSServer(t *testing.T) {
	s := newSpread(t, harness.Options{})
	servers := s.names(t, "nats")
	s.under(t, func() {
		for _, name := range servers { // an orderly shutdown compacts their Raft logs
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
		t.Logf("%s, with a flipped bit: %t, has lost %d records", name, name == bad, n)
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

// renew deletes a server's data: the others send it again.
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
