package jetstream

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// answering is a server whose answers to appends the test sets.
type answering struct {
	js.JetStream

	answer func() (*js.PubAck, error)
}

func (a answering) PublishMsg(context.Context, *nats.Msg, ...js.PublishOpt) (*js.PubAck, error) {
	return a.answer()
}

// Another append in progress is not a conflict: it may fail, and cannot be read yet.
func TestAppend_WaitsForAnotherAppendInProgress(t *testing.T) {
	t.Parallel()
	undecided := &js.APIError{Code: 400, ErrorCode: js.JSErrCodeStreamWrongLastSequenceConstant}
	f := frame.NewStart(subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}, []byte(`{}`))
	asked := 0
	l := &Log{link: natslink.Watch(natsdtest.Connect(t)), js: answering{answer: func() (*js.PubAck, error) {
		if asked++; asked < 3 {
			return nil, undecided
		}
		return &js.PubAck{Sequence: 7}, nil
	}}}
	pos, err := l.Append(t.Context(), f, 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, pos)

	ctx, cancel := context.WithCancel(t.Context())
	l.js = answering{answer: func() (*js.PubAck, error) {
		cancel()
		return nil, undecided
	}}
	_, err = l.Append(ctx, f, 0)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	require.NotErrorIs(t, err, runlog.ErrConflict)
}
