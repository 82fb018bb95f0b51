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
	s.asked++
	return raw(s.frames[len(s.frames)-1], uint64(len(s.frames))), nil
}

func raw(f *frame.Frame, pos uint64) *js.RawStreamMsg {
	m := &js.RawStreamMsg{Subject: f.Run.Frame(f.Kind), Sequence: pos, Header: nats.Header{}, Data: f.Body}
	for k, v := range f.Headers() {
		m.Header[k] = []string{v}
	}
	return m
}

// What any server has is there; what is last, and that nothing follows, the leader is asked.
func TestLog_AsksTheLeaderForTheEndOfARunAlone(t *testing.T) {
	t.Parallel()
	l, _ := laggingLog(t)
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}
	frames := []*frame.Frame{frame.NewStart(run, []byte(`{}`))}
	for i := range 9 {
		head := frames[i].Head()
		head.Pos = uint64(i + 1)
		frames = append(frames, frame.New(run, subject.Wake, head, nil))
	}
	behind, leader := &fakeServer{frames: frames[:8]}, &fakeServer{frames: frames}
	l.stream, l.leader = behind, leader

	got, err := l.Run(t.Context(), run)
	require.NoError(t, err)
	require.Len(t, got, 10)
	require.Equal(t, 4, leader.asked, "for two frames, that there are no more, and which is the last")
	last, err := l.Last(t.Context(), run)
	require.NoError(t, err)
	require.EqualValues(t, 10, last.Pos)
}
