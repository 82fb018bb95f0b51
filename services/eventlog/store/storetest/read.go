package storetest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// longRun stores a run of events 0 to 29, three in each frame.
func longRun(t *testing.T, s store.Store) store.Run {
	t.Helper()
	r := row("r1", 1)
	frames := []store.Frame{record(r)}
	for first := 0; first < 30; first += 3 {
		frames = append(frames, frameOf(r, first, first+2))
	}
	apply(t, s, 12, []store.Run{r}, frames...)
	return r
}

func firsts(frames []store.Frame) []int {
	out := []int{}
	for _, f := range frames {
		out = append(out, f.First)
	}
	return out
}

func framesBegin(t *testing.T, s store.Store) {
	r := longRun(t, s)
	for _, tt := range []struct {
		from int
		want []int
	}{
		{store.RecordFirst, []int{-1, 0}},
		{0, []int{0}},
		{1, []int{0}},
		{2, []int{0}},
		{3, []int{3}},
		{28, []int{27}},
		{29, []int{27}},
		{30, []int{}},
		{1000, []int{}},
	} {
		frames, err := s.Frames(t.Context(), r.Key, tt.from, 1)
		require.NoError(t, err)
		require.Equal(t, tt.want, firsts(frames), "from %d", tt.from)
	}
	absent := store.Key{Tenant: "acme", RunID: "absent"}
	frames, err := s.Frames(t.Context(), absent, 0, 10)
	require.NoError(t, err)
	require.Empty(t, frames)
}

func framesStopAtLimit(t *testing.T, s store.Store) {
	r := longRun(t, s)
	for _, tt := range []struct {
		from, limit int
		want        []int
	}{
		{0, 3, []int{0}},
		{0, 4, []int{0, 3}},
		{1, 3, []int{0, 3}},
		{2, 1, []int{0}},
		{2, 2, []int{0, 3}},
		{26, 99, []int{24, 27}},
	} {
		frames, err := s.Frames(t.Context(), r.Key, tt.from, tt.limit)
		require.NoError(t, err)
		require.Equal(t, tt.want, firsts(frames), "from %d limit %d", tt.from, tt.limit)
	}
}

func framesStopAtBytes(t *testing.T, s store.Store) {
	r := row("r1", 1)
	var frames []store.Frame
	for i := range 5 {
		f := frameOf(r, i, i)
		f.Body = fmt.Appendf(nil, `["%s"]`, bytes.Repeat([]byte("x"), store.PageBytes/3))
		frames = append(frames, f)
	}
	huge := frameOf(r, 5, 5)
	huge.Body = fmt.Appendf(nil, `["%s"]`, bytes.Repeat([]byte("x"), store.PageBytes+1))
	apply(t, s, 12, []store.Run{r}, append(frames, huge)...)

	got, err := s.Frames(t.Context(), r.Key, 0, 100)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2}, firsts(got))
	got, err = s.Frames(t.Context(), r.Key, 5, 100)
	require.NoError(t, err)
	require.Equal(t, []int{5}, firsts(got), "at least one frame is returned")
}

func framesComeBack(t *testing.T, s store.Store) {
	r := row("r1", 1)
	f := frameOf(r, 0, 0)
	f.Types = []wire.EventType{"vendor.acme.thing"}
	f.Body = []byte(" [ {\"a\":1.0e1, \"z\":\"\\u2028\xc3\xa9\\\"],\"}\n]")
	apply(t, s, 12, []store.Run{r}, f)
	got, err := s.Frames(t.Context(), r.Key, 0, 1)
	require.NoError(t, err)
	require.Equal(t, []store.Frame{f}, got)
}
