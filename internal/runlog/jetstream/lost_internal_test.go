package jetstream

import (
	"context"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

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

// A server that has lost records hands out the rest as if nothing were amiss.
func TestFollow_TakesNoGapForGranted(t *testing.T) {
	t.Parallel()
	errGap := errors.New("a gap")
	for name, tc := range map[string]struct {
		positions []uint64
		decides   error
		missing   [][2]uint64
		want      []uint64 // what is handed over
	}{
		"in order":                   {[]uint64{5, 6, 7}, nil, nil, []uint64{5, 6, 7}},
		"a gap":                      {[]uint64{5, 8, 9}, errGap, [][2]uint64{{6, 7}}, nil},
		"a gap at the beginning":     {[]uint64{6}, errGap, [][2]uint64{{5, 5}}, nil},
		"a gap that nobody can mend": {[]uint64{5, 8, 9}, nil, [][2]uint64{{6, 7}}, []uint64{5, 8, 9}},
		"what comes again is no gap": {[]uint64{5, 6, 5, 6, 7}, nil, nil, []uint64{5, 6, 5, 6, 7}},
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
				next: 5, damaged: func(pos uint64, err error) { t.Errorf("%d: %v", pos, err) },
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
