package execute_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
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
