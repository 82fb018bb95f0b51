package natsd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// strict is the layout of a bucket of texts.
type strict struct{}

var textKey = regexp.MustCompile(`^\$KV\.b\.key-[0-9]+$`)

func (strict) Record(_, subject string, value []byte) Record {
	return Record{Valid: textKey.MatchString(subject) && (len(value) == 0 || value[0] == '{' || value[0] == 0)}
}

// stored returns a block as the server wrote it: with headers and without, with messages that were
// replaced, and with deletions.
func stored(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	s := serverAt(t, dir)
	a := api(t, s)
	kv, err := a.CreateKeyValue(t.Context(), js.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	for i := range 12 {
		m := nats.NewMsg(fmt.Sprintf("$KV.b.key-%d", i%7))
		if m.Data = fmt.Appendf(nil, `{"i":%d}`, i); i%3 == 0 {
			m.Header.Set("Kind", "third")
		}
		_, err := a.PublishMsg(t.Context(), m)
		require.NoError(t, err)
	}
	require.NoError(t, kv.Delete(t.Context(), "key-3"))
	s.Stop()
	b, err := os.ReadFile(filepath.Join(streamsDir(dir), "KV_b", "msgs", "1.blk"))
	require.NoError(t, err)
	return b
}

func TestMend_PutsEveryBitOfABlockRight(t *testing.T) {
	t.Parallel()
	whole := stored(t)
	require.True(t, newBlock(bytes.Clone(whole), "KV_b", 1, strict{}).whole())
	for i := range whole {
		for bit := range 8 {
			b := newBlock(bytes.Clone(whole), "KV_b", 1, strict{})
			b.buf[i] ^= 1 << bit
			left := work
			found, cut := b.mend(&left)
			if bytes.Equal(b.buf, whole) && cut < 0 && len(found) == 1 && found[0].Outcome == Repaired {
				continue
			}
			// The bits that the checksum leaves out matter for messages only.
			require.True(t, b.whole() && cut < 0 && len(found) == 0, "byte %d, bit %d: %+v", i, bit, found)
		}
	}
}

// After overwriting any bytes, the remaining records are valid, and intact ones stay.
func TestMend_LeavesASoundBlock(t *testing.T) {
	t.Parallel()
	whole := stored(t)
	for size := 1; size < 200; size += 13 {
		for at := 0; at+size <= len(whole); at += 7 {
			b := newBlock(bytes.Clone(whole), "KV_b", 1, strict{})
			for i := range size {
				b.buf[at+i] = byte(i * 37)
			}
			left := work
			found, cut := b.mend(&left)
			if cut >= 0 {
				b.buf = b.buf[:cut]
			}
			// A record that matches its checksum is left alone even if its subject, whose end the checksum
			// does not cover, is odd.
			require.True(t, b.whole() || len(found) == 0, "%d bytes at %d: %+v", size, at, found)
			last := uint64(0)
			for at := 0; at < len(b.buf); at += b.size(at) {
				if b.message(at) {
					require.Greater(t, b.sequence(at), last)
					require.Less(t, b.sequence(at), uint64(20))
					last = b.sequence(at)
				}
			}
		}
	}
}

func TestRecover_HasLimits(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{Dir: abandonedDir(t), Layout: anyLayout{}, Log: slog.New(slog.DiscardHandler)}, password: "secret"}
	_, err := s.recover(t.Context(), Limits{Time: time.Nanosecond, Memory: 1 << 40})
	require.ErrorContains(t, err, "not recovered within 1ns")
	require.ErrorContains(t, err, s.cfg.Dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Start(ctx, Config{Dir: abandonedDir(t), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "stopped while")
}

// After a restart that cannot be ended, the files are not opened again: the process must end.
func TestReopen_LeavesFilesToTheServerThatWorksOnThem(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Config{Dir: abandonedDir(t), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	s.cfg.Recovery.Time = time.Nanosecond
	err = s.reopen(t.Context())
	require.ErrorContains(t, err, "not recovered within 1ns (--log-recovery-timeout)")
	require.ErrorContains(t, err, s.cfg.Dir)
	require.ErrorIs(t, s.Ready(), errDown)
}

// abandonedDir is a directory in which a server may still be starting when the test ends.
func abandonedDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "abandoned") //nolint:usetesting // its removal would fail while the server writes
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(dir) == nil }, patience, 10*time.Millisecond)
	})
	return dir
}

func TestRecoveryLog_NamesTheStreamsInRecovery(t *testing.T) {
	t.Parallel()
	l := &recoveryLog{log: slog.New(slog.DiscardHandler), recovering: map[string]bool{}}
	l.Noticef("  Starting restore for stream '%s > %s'", "$G", "ONE")
	l.Noticef("  Starting restore for stream '%s > %s'", "$G", "TWO")
	l.Noticef("  Restored %s messages for stream '%s > %s' in %v", "2", "$G", "ONE", time.Second)
	require.Equal(t, []string{"TWO"}, l.streams())
	s := &Server{cfg: Config{Dir: "store"}}
	require.Equal(t, filepath.Join(streamsDir("store"), "TWO"), s.named(l))
}

// Files that are not checked before the start are checked while the server runs.
func TestCheckRest_FindsDamageInAFileThatWasNotChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serverAt(t, dir)
	a := api(t, s)
	_, err := a.CreateStream(t.Context(), js.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}})
	require.NoError(t, err)
	_, err = a.Publish(t.Context(), "log.a", []byte("text"))
	require.NoError(t, err)
	s.unchecked = []blockFile{{stream: "LOG", number: 1}}
	require.False(t, s.checkRest(t.Context()))
	path := s.unchecked[0].path(streamsDir(dir))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[len(b)-10] ^= 1
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.True(t, s.checkRest(t.Context()))
	require.NoError(t, s.Restart())
	require.Len(t, s.Damage(), 1)
	require.Equal(t, Repaired, s.Damage()[0].Outcome)
}
