package jetstream

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// fakeServer has the first frames of a run.
type fakeServer struct {
	js.Stream
	frames []*frame.Frame
	asked  int
}

func (s *fakeServer) GetMsg(_ context.Context, pos uint64, _ ...js.GetMsgOpt) (*js.RawStreamMsg, error) {
	s.asked++
	if pos > uint64(len(s.frames)) {
		return nil, js.ErrMsgNotFound
	}
	return raw(s.frames[max(pos, 1)-1], max(pos, 1)), nil
}

func (s *fakeServer) GetLastMsgForSubject(context.Context, string) (*js.RawStreamMsg, error) {
	if len(s.frames) == 0 {
		return nil, js.ErrMsgNotFound
	}
	s.asked++
	return raw(s.frames[len(s.frames)-1], uint64(len(s.frames))), nil
}

// CachedInfo describes a server that returns one message per request.
func (s *fakeServer) CachedInfo() *js.StreamInfo { return &js.StreamInfo{} }

func raw(f *frame.Frame, pos uint64) *js.RawStreamMsg {
	m := &js.RawStreamMsg{Subject: f.Run.Frame(f.Kind), Sequence: pos, Header: nats.Header{}, Data: f.Body}
	for k, v := range f.Headers() {
		m.Header[k] = []string{v}
	}
	return m
}

// tenFrames are those of a run.
func tenFrames() (subject.Run, []*frame.Frame) {
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	frames := []*frame.Frame{frame.NewStart(run, []byte(`{}`))}
	for i := range 9 {
		head := frames[i].Head()
		head.Pos = uint64(i + 1)
		frames = append(frames, frame.New(run, subject.Wake, head, nil))
	}
	return run, frames
}

// Frames may be read from any server. Only the leader answers which frame is the last.
func TestLog_ReadsOnlyTheEndOfARunFromTheLeader(t *testing.T) {
	t.Parallel()
	l, _ := laggingLog(t)
	run, frames := tenFrames()
	behind, leader := &fakeServer{frames: frames[:8]}, &fakeServer{frames: frames}
	l.stream, l.leader = behind, leader

	got, err := l.Run(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, got, 10)
	require.Equal(t, 5, leader.asked, "for the last frame, for two frames, that there are no more, and again for the last")
	last, err := l.Last(t.Context(), run)
	require.NoError(t, err)
	require.EqualValues(t, 10, last.Pos)
}

// gappedServer has lost some of a run's frames, and delivers later ones.
type gappedServer struct {
	*fakeServer
	lost uint64
}

func (s *gappedServer) GetMsg(ctx context.Context, pos uint64, opts ...js.GetMsgOpt) (*js.RawStreamMsg, error) {
	if pos == s.lost {
		pos++
	}
	return s.fakeServer.GetMsg(ctx, pos, opts...)
}

// A frame that one server has lost is requested from the leader before the run counts as damaged.
func TestLog_ReportsDamageOnlyIfTheLeaderConfirmsIt(t *testing.T) {
	t.Parallel()
	run, frames := tenFrames()
	flipped := *frames[4]
	flipped.Body = []byte("{}")
	turned := append(append(append([]*frame.Frame{}, frames[:4]...), &flipped), frames[5:]...)
	whole := func() js.Stream { return &fakeServer{frames: frames} }
	gapped := func() js.Stream { return &gappedServer{&fakeServer{frames: frames}, 5} }
	bit := func() js.Stream { return &fakeServer{frames: turned} }
	for name, tc := range map[string]struct {
		any, leader func() js.Stream
		damaged     bool
	}{
		"all are whole":       {whole, whole, false},
		"another has a gap":   {gapped, whole, false},
		"another has a bit":   {bit, whole, false},
		"all have the gap":    {gapped, gapped, true},
		"each has a way":      {gapped, bit, true},
		"the leader's is bad": {whole, gapped, false},
		"the leader has none": {bit, func() js.Stream { return &fakeServer{} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _ := laggingLog(t)
			l.stream, l.leader = tc.any(), tc.leader()
			got, err := l.Run(t.Context(), run)
			if err == nil {
				err = frame.VerifyChain(got)
			}
			if tc.damaged {
				require.ErrorIs(t, err, frame.ErrDamaged)
				return
			}
			require.NoError(t, err)
			require.Len(t, got, 10)
		})
	}
}
