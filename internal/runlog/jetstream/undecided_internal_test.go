package jetstream

import (
	"context"
	"testing"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// That another append is on its way is no conflict: it may come to nothing, and nobody can
// read it yet.
func TestAppend_WaitsForAnotherThatIsOnItsWay(t *testing.T) {
	t.Parallel()
	d := newDesk()
	l := &Log{group: &group{to: d}}
	undecided := &js.APIError{Code: 400, ErrorCode: js.JSErrCodeStreamWrongLastSequenceConstant}
	f := frame.NewStart(subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}, []byte(`{}`))
	go func() {
		for _, a := range []answer{{err: undecided}, {err: undecided}, {pos: 7}} {
			(<-d.alone).answer <- a
		}
	}()
	pos, err := l.Append(t.Context(), f, 0)
	require.NoError(t, err)
	require.EqualValues(t, 7, pos)

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		s := <-d.alone
		cancel()
		s.answer <- answer{err: undecided}
	}()
	_, err = l.Append(ctx, f, 0)
	require.ErrorIs(t, err, runlog.ErrUnavailable)
	require.NotErrorIs(t, err, runlog.ErrConflict)
}
