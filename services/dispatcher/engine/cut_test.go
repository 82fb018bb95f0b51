package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// Events derived from a redacted value are derived from its marker: they reveal nothing of the
// secret, and a replay derives the same ones (OpenWOP host contract §7.2, OpenWOP envelope contract
// §11).
func TestExecute_DerivesValuesFromTheMarkerOfASecret(t *testing.T) {
	t.Parallel()
	const (
		secret = "hunter2-hunter2-hunter2"
		marker = `"[REDACTED:s]"`
		size   = `{"id":"b","typeId":"core.identity","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{"size":{"type":"expression","expression":"size(nodes.a.output)"}}}`
		edge   = `{"id":"e","sourceNodeId":"a","sourceOutput":"output","targetNodeId":"b","targetInput":"x"}`
	)
	check := func(t *testing.T, r *rig) {
		t.Helper()
		st, frames := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.JSONEq(t, marker, string(st.Nodes["a"].Outputs["output"]))
		require.JSONEq(t, `12`, string(st.Nodes["b"].Outputs["size"]), "derived from the marker")
		for _, f := range frames {
			require.NotContains(t, string(f.Body), secret)
		}
	}
	t.Run("of a model", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+size, edge),
			models(func(context.Context, model.Task, model.Journal) model.Result {
				return model.Result{Output: node.Output{Ports: map[string]json.RawMessage{"output": json.RawMessage(`"` + secret + `"`)}}}
			}))
		r.red.secret = secret
		r.create(t)
		r.next(t)
		check(t, r)
	})
	t.Run("of an answer", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, define(t, nodeJSON("a", "core.interrupt", `{"kind":"custom","data":{"customKind":"any"}}`)+","+size, edge), nil)
		r.red.secret = secret
		r.create(t)
		r.next(t)
		answer := engine.Answer{
			NodeID: "a",
			Answer: interrupt.Answer{
				Value: json.RawMessage(`"` + secret + `"`),
				By:    interrupt.Responder{Principal: "key"},
				At:    time.Now(),
			},
		}
		got, err := r.exec.Resolve(t.Context(), "acme", "run_1", answer)
		require.NoError(t, err)
		require.Equal(t, wire.StatusRunning, got.Status, "another session continues it")
		_, err = r.exec.Resolve(t.Context(), "acme", "run_1", answer)
		require.Equal(t, fault.InterruptResolved, fault.CodeOf(err))
		r.next(t)
		check(t, r)
	})
	t.Run("not where nothing changes", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, define(t, nodeJSON("a", "core.interrupt", `{"kind":"custom","data":{"customKind":"any"}}`)+","+size, edge), nil)
		r.create(t)
		r.next(t)
		got, err := r.exec.Resolve(t.Context(), "acme", "run_1", engine.Answer{
			NodeID: "a",
			Answer: interrupt.Answer{Value: json.RawMessage(`"abc"`), At: time.Now()},
		})
		require.NoError(t, err)
		require.Equal(t, wire.StatusCompleted, got.Status, "in the same frame")
		_, frames := r.state(t)
		require.Len(t, frames, 3)
		require.NoError(t, frame.VerifyChain(frames))
	})
}
