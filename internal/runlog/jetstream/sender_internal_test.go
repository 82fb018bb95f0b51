package jetstream

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Positions are counted from the last message of a batch, so one that is not where the
// acknowledgement says leaves all in doubt.
func TestSender_BelievesAnAcknowledgementOnlyOfItsLastMessage(t *testing.T) {
	t.Parallel()
	nc := natsdtest.Connect(t)
	cfg := DefaultConfig()
	cfg.ShareSync = true
	log, err := Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	s, ok := log.group.to.(sender)
	require.True(t, ok)
	var batch []*ticket
	for _, id := range []string{"a", "b", "c"} {
		batch = append(batch, &ticket{entry: newEntry(frame.NewOpen(subject.Run{Tenant: "acme", WorkflowID: "w", RunID: id}, []byte(`{}`)), 0)})
	}
	last, err := s.many(batch)
	require.NoError(t, err)
	require.EqualValues(t, 3, last)

	m, err := s.stream.GetMsg(t.Context(), 3)
	require.NoError(t, err)
	end := &nats.Msg{Header: m.Header}
	require.NoError(t, s.ends(t.Context(), 3, end))
	for _, pos := range []uint64{2, 4} {
		require.ErrorIs(t, s.ends(t.Context(), pos, end), natslink.ErrLost)
	}
	_, err = s.many(batch)
	require.ErrorIs(t, err, errBatch, "all of them are there")
	_, err = s.many(append([]*ticket{{entry: newEntry(frame.NewOpen(subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "d"}, []byte(`{}`)), 0)}}, batch[0]))
	require.ErrorIs(t, err, errBatch)
	info, err := s.stream.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 3, info.State.LastSeq, "nothing of it was stored")
}
