package jetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Nothing is ever deleted from the log, so positions without a record were lost.
func TestLost_CountsPositionsWithoutARecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		state js.StreamState
		want  uint64
	}{
		"an empty log":     {js.StreamState{}, 0},
		"a whole one":      {js.StreamState{FirstSeq: 1, LastSeq: 7, Msgs: 7}, 0},
		"some between":     {js.StreamState{FirstSeq: 1, LastSeq: 31_131, Msgs: 30_598, NumDeleted: 533}, 533},
		"the first":        {js.StreamState{FirstSeq: 4, LastSeq: 7, Msgs: 4}, 3},
		"all of them":      {js.StreamState{FirstSeq: 8, LastSeq: 7}, 7},
		"seen as it grows": {js.StreamState{FirstSeq: 1, LastSeq: 7, Msgs: 8}, 0},
	} {
		require.Equal(t, tc.want, lost(tc.state), name)
	}
}

// at is the record of a run at a position.
type at struct {
	js.Msg
	pos uint64
	f   *frame.Frame
}

func record(pos uint64) js.Msg {
	return at{pos: pos, f: frame.NewStart(subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}, []byte(`{}`))}
}

func (a at) Metadata() (*js.MsgMetadata, error) {
	return &js.MsgMetadata{Sequence: js.SequencePair{Stream: a.pos}}, nil
}
func (a at) Subject() string { return a.f.Run.Frame(a.f.Kind) }
func (a at) Data() []byte    { return a.f.Body }

func (a at) Headers() nats.Header {
	h := nats.Header{}
	for k, v := range a.f.Headers() {
		h.Set(k, v)
	}
	return h
}

// A server that has lost records delivers the rest without an error.
func TestFollow_ChecksGapsWithTheLeader(t *testing.T) {
	t.Parallel()
	errGap := errors.New("a gap")
	for name, tc := range map[string]struct {
		positions []uint64
		decides   error
		missing   [][2]uint64
		want      []uint64 // the delivered positions
	}{
		"in order":               {[]uint64{5, 6, 7}, nil, nil, []uint64{5, 6, 7}},
		"a gap":                  {[]uint64{5, 8, 9}, errGap, [][2]uint64{{6, 7}}, nil},
		"a gap at the beginning": {[]uint64{6}, errGap, [][2]uint64{{5, 5}}, nil},
		"a gap without a copy":   {[]uint64{5, 8, 9}, nil, [][2]uint64{{6, 7}}, []uint64{5, 8, 9}},
		"redelivered records":    {[]uint64{5, 6, 5, 6, 7}, nil, nil, []uint64{5, 6, 5, 6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			in := make(chan js.Msg, len(tc.positions))
			for _, pos := range tc.positions {
				in <- record(pos)
			}
			var missing [][2]uint64
			var got []uint64
			d := drain{
				free: func(int64) {},
				next: 5, damaged: func(_ subject.Run, pos uint64, err error) { t.Errorf("%d: %v", pos, err) },
				missing: func(from, to uint64) error {
					missing = append(missing, [2]uint64{from, to})
					return tc.decides
				},
			}
			err := d.run(ctx, in, nil, func(batch []*frame.Frame) error {
				for _, f := range batch {
					got = append(got, f.Pos)
				}
				if len(got) == len(tc.positions) {
					cancel()
				}
				return nil
			})
			if tc.decides != nil {
				require.ErrorIs(t, err, errGap)
			} else {
				require.ErrorIs(t, err, context.Canceled)
			}
			require.Equal(t, tc.missing, missing)
			require.Equal(t, tc.want, got)
		})
	}
}

// losing is a log of which records can be deleted.
func losing(t *testing.T) (*Log, js.Stream) {
	t.Helper()
	nc := natsdtest.Connect(t)
	api, err := js.New(nc)
	require.NoError(t, err)
	stream, err := api.CreateStream(t.Context(), js.StreamConfig{
		Name:        subject.Stream,
		Subjects:    []string{subject.All},
		AllowDirect: true,
	})
	require.NoError(t, err)
	l, err := Attach(t.Context(), nc)
	require.NoError(t, err)
	return l, stream
}

// copied is a copy of the log with ten records, of which a server has lost some.
func copied(t *testing.T, lost ...uint64) *Log {
	t.Helper()
	l, stream := losing(t)
	for i := range 10 {
		_, err := l.Append(t.Context(), frame.NewStart(subject.Run{
			Tenant:     "acme",
			WorkflowID: "w",
			RunID:      fmt.Sprint("r", i),
		}, []byte(`{}`)), 0)
		require.NoError(t, err)
	}
	for _, pos := range lost {
		require.NoError(t, stream.DeleteMsg(t.Context(), pos))
	}
	return l
}

// A record that the leader has lost does not excuse the records that another server has lost.
func TestFollow_SkipsOnlyTheGapsOfTheLeader(t *testing.T) {
	t.Parallel()
	const all = 10
	for name, tc := range map[string]struct {
		leader, other []uint64 // the lost positions
		passes        bool
	}{
		"the same of both":                     {[]uint64{5, 9}, []uint64{5, 9}, true},
		"more of the leader":                   {[]uint64{5, 8, 9}, []uint64{5, 9}, true},
		"the leader whole":                     {nil, []uint64{5}, false},
		"the leader's long ago, another's now": {[]uint64{5}, []uint64{5, 9}, false},
		"a part of the gap":                    {[]uint64{5, 6}, []uint64{5, 6, 7}, false},
		"the rest of the gap":                  {[]uint64{6, 7}, []uint64{5, 6, 7}, false},
		"the leader's tail":                    {[]uint64{9, 10}, []uint64{9}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := copied(t, tc.other...)
			l.leader = copied(t, tc.leader...).leader
			enough := errors.New("enough")
			var got []uint64
			err := l.Follow(t.Context(), 0, func(batch []*frame.Frame) error {
				for _, f := range batch {
					got = append(got, f.Pos)
				}
				if got[len(got)-1] == all {
					return enough
				}
				return nil
			}, func(_ subject.Run, pos uint64, err error) { t.Errorf("%d: %v", pos, err) })
			if !tc.passes {
				require.ErrorIs(t, err, runlog.ErrUnavailable)
				require.NotContains(t, got, uint64(all), "nothing behind the gap")
				return
			}
			require.ErrorIs(t, err, enough)
			require.Len(t, got, all-len(tc.other))
		})
	}
}
