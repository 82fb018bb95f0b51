package jetstream

import (
	"context"
	"errors"
	"testing"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// lagging is a stream whose leader is behind the other servers.
type lagging struct {
	js.Stream
	asked int
	ends  []uint64 // the last positions it reports, in order; then it fails
}

func (s *lagging) Info(context.Context, ...js.StreamInfoOpt) (*js.StreamInfo, error) {
	s.asked++
	if len(s.ends) == 0 {
		return nil, errors.New("no leader")
	}
	end := s.ends[0]
	s.ends = s.ends[1:]
	return &js.StreamInfo{State: js.StreamState{LastSeq: end}}, nil
}

func laggingLog(t *testing.T, ends ...uint64) (*Log, *lagging) {
	t.Helper()
	nc := natsdtest.Connect(t)
	log, err := Open(t.Context(), nc, DefaultConfig())
	require.NoError(t, err)
	s := &lagging{Stream: log.stream, ends: ends}
	log.stream, log.alone = s, false
	return log, s
}

func TestSettled_WaitsForTheLeader(t *testing.T) {
	t.Parallel()
	log, s := laggingLog(t, 3, 3, 5)
	require.NoError(t, log.settled(t.Context(), 4))
	require.Equal(t, 3, s.asked)
	require.NoError(t, log.settled(t.Context(), 5))
	require.Equal(t, 3, s.asked, "it is known")
	require.ErrorIs(t, log.settled(t.Context(), 6), runlog.ErrUnavailable)
	log.alone = true
	require.NoError(t, log.settled(t.Context(), 7), "the delivering server is the leader")
}

func TestFollow_ReturnsFramesThatCanBeRead(t *testing.T) {
	t.Parallel()
	log, s := laggingLog(t, 0, 1)
	_, err := log.Append(t.Context(), frame.NewStart(subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}, []byte(`{}`)), 0)
	require.NoError(t, err)
	done := errors.New("enough")
	err = log.Follow(t.Context(), 0, func(batch []*frame.Frame) error {
		require.Len(t, batch, 1)
		require.Empty(t, s.ends)
		return done
	}, nil)
	require.ErrorIs(t, err, done)
}
