package natsd_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
)

// damagedStore is a store with ten messages in a stream, whose server is stopped.
type damagedStore struct {
	dir  string
	said bytes.Buffer
}

func newDamagedStore(t *testing.T) *damagedStore {
	t.Helper()
	s := &damagedStore{dir: t.TempDir()}
	srv, api := s.start(t)
	_, err := api.CreateStream(t.Context(), js.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}, DenyDelete: true})
	require.NoError(t, err)
	for i := range 10 {
		m := nats.NewMsg(fmt.Sprint("log.", i))
		if m.Data = fmt.Appendf(nil, "text-%d", i); i%2 == 0 {
			m.Header.Set("Kind", "even")
		}
		_, err := api.PublishMsg(t.Context(), m)
		require.NoError(t, err)
	}
	srv.Stop()
	return s
}

func (s *damagedStore) start(t *testing.T) (*natsd.Server, js.JetStream) {
	t.Helper()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: s.dir, Sync: true, Log: slog.New(slog.NewTextHandler(&s.said, nil))}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	api, err := js.New(nc)
	require.NoError(t, err)
	return srv, api
}

func (s *damagedStore) file(parts ...string) string {
	return filepath.Join(append([]string{s.dir, "jetstream", "$G", "streams", "LOG"}, parts...)...)
}

func (s *damagedStore) change(t *testing.T, file string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, change(b), 0o600))
}

// texts returns what is at each position after a start; "-" for nothing.
func (s *damagedStore) texts(t *testing.T) (texts []string, found []natsd.Damage) {
	t.Helper()
	srv, api := s.start(t)
	st, err := api.Stream(t.Context(), "LOG")
	require.NoError(t, err)
	for seq := uint64(1); seq <= st.CachedInfo().State.LastSeq; seq++ {
		m, err := st.GetMsg(t.Context(), seq)
		if err != nil {
			require.ErrorIs(t, err, js.ErrMsgNotFound)
			texts = append(texts, "-")
			continue
		}
		texts = append(texts, string(bytes.Trim(m.Data, "\x00")))
	}
	return texts, srv.Damage()
}

func flipped(text string, by int) func([]byte) []byte {
	return func(file []byte) []byte { file[bytes.Index(file, []byte(text))+by] ^= 1; return file }
}

func twice(text string, one, other int) func([]byte) []byte {
	return func(file []byte) []byte {
		at := bytes.Index(file, []byte(text))
		file[at+one] ^= 1
		file[at+other] ^= 1
		return file
	}
}

func TestStart_PutsDamageRight(t *testing.T) {
	t.Parallel()
	all := []string{"text-0", "text-1", "text-2", "text-3", "text-4", "text-5", "text-6", "text-7", "text-8", "text-9"}
	with := func(i int, text string) []string {
		out := append([]string(nil), all...)
		out[i] = text
		return out
	}
	// Offsets of fields of a record from its subject.
	const length, sequence, time = -22, -18, -10
	both := func(changes ...func([]byte) []byte) func([]byte) []byte {
		return func(file []byte) []byte {
			for _, c := range changes {
				file = c(file)
			}
			return file
		}
	}
	for name, tc := range map[string]struct {
		change func([]byte) []byte
		want   []string
		found  []natsd.Outcome
	}{
		"nothing":                        {func(b []byte) []byte { return b }, all, nil},
		"a bit of a message":             {flipped("text-4", 5), all, []natsd.Outcome{natsd.Repaired}},
		"a bit of the first message":     {flipped("text-0", 5), all, []natsd.Outcome{natsd.Repaired}},
		"a bit of the last message":      {flipped("text-9", 5), all, []natsd.Outcome{natsd.Repaired}},
		"a bit of a length":              {flipped("log.4", length), all, []natsd.Outcome{natsd.Repaired}},
		"a bit of the last length":       {flipped("log.9", length), all, []natsd.Outcome{natsd.Repaired}},
		"a bit of a checksum":            {flipped("text-4", len("text-4")), all, []natsd.Outcome{natsd.Repaired}},
		"a bit of a subject":             {flipped("log.4", 1), all, []natsd.Outcome{natsd.Repaired}},
		"a bit of a time":                {flipped("log.4", time), all, []natsd.Outcome{natsd.Repaired}},
		"a low bit of a sequence":        {flipped("log.4", sequence), all, []natsd.Outcome{natsd.Repaired}},
		"a middle bit of a sequence":     {flipped("log.4", sequence+4), all, []natsd.Outcome{natsd.Repaired}},
		"a high bit of a sequence":       {flipped("log.4", sequence+7), all, []natsd.Outcome{natsd.Repaired}},
		"a high bit of the last":         {flipped("log.9", sequence+4), all, []natsd.Outcome{natsd.Repaired}},
		"bits of two messages":           {both(flipped("text-3", 5), flipped("text-4", 5)), all, []natsd.Outcome{natsd.Repaired, natsd.Repaired}},
		"two bits of a message":          {twice("text-4", 4, 5), with(4, ""), []natsd.Outcome{natsd.Kept}},
		"two bits of a sequence":         {twice("log.4", sequence+4, sequence+5), with(4, ""), []natsd.Outcome{natsd.Kept}},
		"two bits of the first sequence": {twice("log.0", sequence+4, sequence+5), with(0, ""), []natsd.Outcome{natsd.Kept}},
		"a torn block": {func(b []byte) []byte {
			clear(b[bytes.Index(b, []byte("log.4"))+length : bytes.Index(b, []byte("text-5"))])
			return b
		}, with(4, "-")[:5], []natsd.Outcome{natsd.Lost}},
		"a torn end":       {func(b []byte) []byte { return b[:len(b)-3] }, all[:9], []natsd.Outcome{natsd.Lost}},
		"the half is gone": {func(b []byte) []byte { return b[:len(b)/2] }, all[:4], []natsd.Outcome{natsd.Lost}},
		"a cut between records": {func(b []byte) []byte {
			return b[:bytes.Index(b, []byte("log.6"))+length]
		}, all[:6], []natsd.Outcome{natsd.Lost}},
		"a bit, and a torn end": {both(flipped("text-4", 5), func(b []byte) []byte { return b[:len(b)-3] }), all[:9], []natsd.Outcome{natsd.Repaired, natsd.Lost}},
	} {
		if name == "a torn block" { // what follows it is whole, except one record
			tc.want = append(tc.want, "-", "text-6", "text-7", "text-8", "text-9")
		}
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", killed ", killed), func(t *testing.T) {
				t.Parallel()
				s := newDamagedStore(t)
				s.change(t, s.file("msgs", "1.blk"), tc.change)
				want, outcomesWanted := tc.want, tc.found
				if killed {
					require.NoError(t, os.Remove(s.file("msgs", "index.db")))
					require.NoError(t, os.Remove(filepath.Join(s.dir, "waybill.sums")))
					if name == "a cut between records" {
						outcomesWanted = nil // a server that was killed there has written the same
					}
				} else {
					for len(want) < len(all) { // the server knows the last position
						want = append(want[:len(want):len(want)], "-")
					}
				}
				got, found := s.texts(t)
				require.Equal(t, want, got)
				var outcomes []natsd.Outcome
				for _, d := range found {
					require.Equal(t, "LOG", d.Stream)
					require.FileExists(t, d.File)
					if strings.Contains(d.What, "are gone") && name != "a cut between records" {
						continue // the torn record is found, too
					}
					outcomes = append(outcomes, d.Outcome)
				}
				require.ElementsMatch(t, outcomesWanted, outcomes, "%+v", found)
				require.Equal(t, len(found), bytes.Count(s.said.Bytes(), []byte("level=ERROR")), s.said.String())
				again, still := s.texts(t)
				require.Equal(t, got, again)
				require.Len(t, still, len(found), "what is repaired is not found again, and what was found is remembered")
			})
		}
	}
}

// A flipped bit of a configuration would make the server leave out the stream, or stop it.
func TestStart_PutsConfigurationsRight(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, s *damagedStore){
		"a bit": func(t *testing.T, s *damagedStore) {
			s.change(t, s.file("meta.inf"), func(b []byte) []byte { b[len(b)/2] ^= 2; return b })
		},
		"a bit of the checksum": func(t *testing.T, s *damagedStore) {
			s.change(t, s.file("meta.sum"), func(b []byte) []byte { b[3] ^= 2; return b })
		},
		"without a checksum": func(t *testing.T, s *damagedStore) { require.NoError(t, os.Remove(s.file("meta.sum"))) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDamagedStore(t)
			change(t, s)
			got, found := s.texts(t)
			require.Len(t, got, 10)
			require.Len(t, found, 1)
			require.Equal(t, natsd.Repaired, found[0].Outcome)
		})
	}
	s := newDamagedStore(t)
	s.change(t, s.file("meta.inf"), func(b []byte) []byte { return b[:len(b)/2] })
	_, api := s.start(t)
	st, err := api.CreateStream(t.Context(), js.StreamConfig{Name: "LOG", Subjects: []string{"log.>"}, DenyDelete: true})
	require.NoError(t, err)
	require.EqualValues(t, 10, st.CachedInfo().State.Msgs, "the host creates the stream again, over the same records")
}

// What an orderly stop has written is compared byte for byte, whatever the file is for.
func TestStart_FindsChangesSinceAnOrderlyStop(t *testing.T) {
	t.Parallel()
	s := newDamagedStore(t)
	srv, api := s.start(t)
	c, err := api.CreateConsumer(t.Context(), "LOG", js.ConsumerConfig{Durable: "reader", AckPolicy: js.AckExplicitPolicy})
	require.NoError(t, err)
	batch, err := c.Fetch(3)
	require.NoError(t, err)
	for m := range batch.Messages() {
		require.NoError(t, m.DoubleAck(t.Context()))
	}
	srv.Stop()
	state := s.file("obs", "reader", "o.dat")
	s.change(t, state, func(b []byte) []byte { b[3] ^= 1; return b })
	srv, api = s.start(t)
	require.Len(t, srv.Damage(), 1)
	require.Equal(t, state, srv.Damage()[0].File)
	info, err := api.Consumer(t.Context(), "LOG", "reader")
	require.NoError(t, err)
	require.EqualValues(t, 3, info.CachedInfo().AckFloor.Stream)
	srv.Stop()

	// After a crash there is nothing to compare with.
	require.NoError(t, os.Remove(filepath.Join(s.dir, "waybill.sums")))
	s.change(t, state, func(b []byte) []byte { b[1] ^= 1; return b })
	srv, api = s.start(t)
	require.Len(t, srv.Damage(), 2)
	require.Equal(t, natsd.Lost, srv.Damage()[1].Outcome)
	_, err = api.CreateOrUpdateConsumer(t.Context(), "LOG", js.ConsumerConfig{Durable: "reader", AckPolicy: js.AckExplicitPolicy})
	require.NoError(t, err)
	srv.Stop()

	require.NoError(t, os.Remove(s.file("msgs", "1.blk")))
	srv, _ = s.start(t)
	require.Len(t, srv.Damage(), 3)
	require.Contains(t, s.said.String(), "it is gone")
}

// A server of an older version does not know the list.
func TestStart_IgnoresAListThatAnotherServerHasMadeOld(t *testing.T) {
	t.Parallel()
	s := newDamagedStore(t)
	sums, err := os.ReadFile(filepath.Join(s.dir, "waybill.sums"))
	require.NoError(t, err)
	srv, api := s.start(t)
	_, err = api.Publish(t.Context(), "log.10", []byte("text-10"))
	require.NoError(t, err)
	srv.Stop()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "waybill.sums"), sums, 0o600))
	got, found := s.texts(t)
	require.Len(t, got, 11)
	require.Empty(t, found)
}
