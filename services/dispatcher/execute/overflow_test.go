package execute_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/execute"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/run"
)

// smallLog takes frames up to a size.
type smallLog struct {
	*memory.Log
	most int
}

func (l smallLog) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if len(f.Body) > l.most {
		return 0, &runlog.TooLargeError{Size: int64(len(f.Body)), Limit: int64(l.most)}
	}
	return l.Log.Append(ctx, f, after)
}

// A run whose next frame nobody takes ends: handed out again, it would come to the same
// for ever.
func TestExecute_EndsARunWhoseLogDoesNotTakeWhatComesNext(t *testing.T) {
	t.Parallel()
	value, err := json.Marshal(strings.Repeat("word ", 2000))
	require.NoError(t, err)
	made := define(t, strings.Replace(nodeJSON("a", "core.identity", "{}"), `"inputs":{}`, `"inputs":{"output":{"type":"static","value":`+string(value)+`}}`, 1))
	for _, by := range []fault.Code{"", fault.PayloadTooLarge, fault.ValidationError} {
		r := newRig(t, made, nil)
		if by == "" {
			r.exec = r.executorOn(smallLog{r.log, 8000}, made, nil)
		} else {
			r.red.most, r.red.refusal = 8000, by
		}
		r.create(t)
		r.next(t)
		st, _ := r.state(t)
		require.Equal(t, wire.StatusFailed, st.Status, by)
		require.Equal(t, "content_too_long", st.Error.Code, by)
		waiting, held := r.log.Backlog()
		require.Zero(t, waiting+held, by)
	}
}

// An answer is taken also if what follows from it is more than the log takes: the run
// ends for that, and whoever answered is not told to try again for ever.
func TestResolve_TakesAnAnswerWhoseRunDoesNotFitItsLog(t *testing.T) {
	t.Parallel()
	large := `"inputs":{"output":{"type":"static","value":"` + strings.Repeat("word ", 2000) + `"}}`
	made := define(t, nodeJSON("gate", "core.approvalGate", `{"title":"t","actions":["accept"]}`)+","+
		strings.Replace(nodeJSON("next", "core.end", "{}"), `"inputs":{}`, large, 1), `{"id":"e","sourceNodeId":"gate","targetNodeId":"next"}`)
	r := newRig(t, made, nil)
	r.exec = r.executorOn(smallLog{r.log, 8000}, made, nil)
	r.create(t)
	r.next(t)
	got, err := r.exec.Resolve(t.Context(), "acme", "run_1", answers(`{"action":"accept"}`, "key_1"))
	require.NoError(t, err)
	require.Equal(t, wire.StatusRunning, got.Status)
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, "content_too_long", st.Error.Code)
}

// A child that no log takes is none, however often its parent is handed out.
func TestSubWorkflow_FailsWhereTheChildIsGivenTooMuch(t *testing.T) {
	t.Parallel()
	f := newFamily(t)
	f.defs.add(t, "leaf", `{"name":"w","type":"string"}`, nodeJSON("a", "core.noop", `{}`))
	f.defs.add(t, "parent", `{"name":"v","type":"string"}`, call(`{"workflowId":"leaf","inputMapping":{"w":"v"}}`))
	f.create(t, "parent", `{"v":"`+strings.Repeat("word ", 2000)+`"}`)
	x := execute.New(execute.Config{Limits: run.Limits{MaxNodeExecutions: 50, MaxDuration: time.Hour, MaxParallel: 4}, Heartbeat: time.Minute}, execute.Deps{
		Log: f.log, Redactor: &redactor{}, Acceptor: noAcceptor{}, Definitions: f.defs, Types: node.Builtin(), Children: f.startsOn(smallLog{f.log, 8000}),
		Clock: f.now, Logger: slog.New(slog.DiscardHandler), Wait: func(subject.Run, frame.Head, time.Time) {}, Forget: func(string, string) {},
	})
	d, err := f.log.Next(t.Context())
	require.NoError(t, err)
	x.Execute(t.Context(), d)
	st := f.state(t, "run_p")
	require.Equal(t, wire.StatusFailed, st.Status)
	require.Equal(t, "content_too_long", st.Error.Code)
	require.Len(t, f.runs(), 1)
}
