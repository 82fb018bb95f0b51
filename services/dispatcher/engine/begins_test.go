package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/queuetime"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/dispatcher/model"
)

// watchedLog records the number of runs that have not started at each append.
type watchedLog struct {
	runlog.Log
	begins *queuetime.Meter
	saw    []int
	err    error
}

func (l *watchedLog) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	l.saw = append(l.saw, l.begins.Inside())
	if l.err != nil {
		return 0, l.err
	}
	return l.Log.Append(ctx, f, after)
}

// The start delay ends with the first append, not with the first model call.
func TestBegins_EndsWithTheFirstAppend(t *testing.T) {
	t.Parallel()
	begins := queuetime.New(time.Millisecond)
	during := -1
	defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}"))
	asked := models(func(context.Context, model.Task, model.Journal) model.Result {
		during = begins.Inside()
		return model.Result{}
	})
	r := newRig(t, defs, asked)
	r.begins = begins
	log := &watchedLog{Log: r.log, begins: begins}
	r.exec = r.executorOn(log, defs, asked)
	r.create(t)
	r.next(t)
	require.Equal(t, []int{1, 0}, log.saw, "the node's start and end")
	require.Zero(t, during, "the start delay ended before the model call")
	require.Zero(t, begins.Inside())
}

func TestBegins_EndsWithARunThatIsHandedBack(t *testing.T) {
	t.Parallel()
	begins := queuetime.New(time.Millisecond)
	defs := define(t, nodeJSON("a", "core.noop", "{}"))
	r := newRig(t, defs, nil)
	r.begins = begins
	log := &watchedLog{Log: r.log, begins: begins, err: errors.New("away")}
	r.exec = r.executorOn(log, defs, nil)
	r.create(t)
	r.next(t)
	require.Equal(t, []int{1}, log.saw)
	require.Zero(t, begins.Inside())
}
