package natsd_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
)

// kept returns the remaining messages of ten after a flipped bit in the file and a crash.
func kept(t *testing.T, hashed []string, flip func(file []byte)) (texts []string, said string) {
	t.Helper()
	dir, out := t.TempDir(), &bytes.Buffer{}
	start := func() (*natsd.Server, js.JetStream) {
		srv, err := natsd.Start(natsd.Config{
			Dir:    dir,
			Sync:   true,
			Hashed: hashed,
			Log:    slog.New(slog.NewTextHandler(out, nil)),
		}, "secret")
		require.NoError(t, err)
		t.Cleanup(srv.Stop)
		nc, err := srv.Connect("test")
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		api, err := js.New(nc)
		require.NoError(t, err)
		return srv, api
	}
	srv, api := start()
	_, err := api.CreateStream(t.Context(), js.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}, DenyDelete: true})
	require.NoError(t, err)
	for i := range 10 {
		_, err := api.Publish(t.Context(), fmt.Sprint("log.", i), fmt.Appendf(nil, "text-%d", i))
		require.NoError(t, err)
	}
	srv.Stop()
	msgs := filepath.Join(dir, "jetstream", "$G", "streams", "LOG", "msgs")
	require.NoError(t, os.Remove(filepath.Join(msgs, "index.db")), "which a server that is killed does not write")
	file, err := os.ReadFile(filepath.Join(msgs, "1.blk"))
	require.NoError(t, err)
	flip(file)
	require.NoError(t, os.WriteFile(filepath.Join(msgs, "1.blk"), file, 0o600))

	_, api = start()
	s, err := api.Stream(t.Context(), "LOG")
	require.NoError(t, err)
	for seq := uint64(1); seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		require.NoError(t, err)
		texts = append(texts, string(m.Data))
	}
	return texts, out.String()
}

func flipped(text string, by int) func([]byte) {
	return func(file []byte) { file[bytes.Index(file, []byte(text))+by] ^= 1 }
}

func TestStart_AfterACrashKeepsWhatFollowsAFlippedBit(t *testing.T) {
	t.Parallel()
	hashed := []string{"LOG"}
	all := []string{"text-0", "text-1", "text-2", "text-3", "text-4", "text-5", "text-6", "text-7", "text-8", "text-9"}
	with := func(i int, text string) []string {
		out := append([]string(nil), all...)
		out[i] = text
		return out
	}
	const record = 22 // is the offset of the subject in a record
	for name, tc := range map[string]struct {
		flip   func([]byte)
		want   []string
		logged bool
	}{
		"nowhere":                           {func([]byte) {}, all, false},
		"in what was published":             {flipped("text-4", 5), with(4, "text-5"), true},
		"in the first":                      {flipped("text-0", 5), with(0, "text-1"), true},
		"in a length, which is made good":   {flipped("log.4", -record), all, true},
		"in a checksum, which is made good": {flipped("text-4", len("text-4")), all, true},
		"in the last, as if it was torn":    {flipped("text-9", 5), all[:9], false},
		"after which the file is torn": {func(file []byte) {
			flipped("text-4", 5)(file)
			flipped("text-9", 5)(file)
		}, with(4, "text-5")[:9], true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, said := kept(t, hashed, tc.flip)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.logged, said != "", said)
		})
	}
	got, said := kept(t, nil, flipped("text-4", 5))
	require.Equal(t, all[:4], got, "damage of a stream without hashes cannot be detected")
	require.Empty(t, said)
}
