package project_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
)

// C3d: a row shows who has to act.
func TestWaits_NamesTheNodeAtWorkAndTheQuestion(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	w.Step(logtest.RunStarted, logtest.Node("n1")[0])
	require.JSONEq(t, `{"for":"node","nodeId":"n1","attempt":1,"since":"2026-03-01T12:00:00.001Z"}`, projected(t, log).Row().Waits)
	w.Step(
		wire.Draft{Type: wire.EventNodeSuspended, NodeID: "n1", Payload: json.RawMessage(`{"reason":"approval"}`)},
		wire.Draft{Type: wire.EventInterruptRequested, NodeID: "n1", Payload: json.RawMessage(
			`{"kind":"approval","nodeId":"n1","interruptId":"i","requestedAt":"2026-03-01T12:00:00.003Z","timeoutMs":60000,"data":{}}`)},
	)
	require.JSONEq(t, `{"for":"approval","nodeId":"n1","since":"2026-03-01T12:00:00.003Z","dueAt":"2026-03-01T12:01:00.003Z","questions":1}`,
		projected(t, log).Row().Waits)
}

// C3: a row names a person where a person has to act, whatever the status of the run is called.
func TestWaits_ShowsWhetherAPersonHasToAct(t *testing.T) {
	t.Parallel()
	surface := `{"catalogVersion":"0.9.1","surface":{"components":[{"component":"field.text","id":"why","label":"Why?"}]}}`
	for name, c := range map[string]struct{ kind, data, want string }{
		"low confidence":     {"low-confidence", `{"agentId":"a","threshold":0.7,"observed":0.2}`, project.WaitsApproval},
		"clarification":      {"clarification", `{"questions":[{"id":"q","question":"?"}]}`, project.WaitsInput},
		"form":               {"custom", `{"customKind":"ui.a2ui-surface","payload":` + surface + `}`, project.WaitsForm},
		"any other of yours": {"custom", `{"customKind":"sign"}`, project.WaitsExternal},
		"event from outside": {"external-event", `{"eventType":"paid","correlation":{"id":"1"}}`, project.WaitsExternal},
	} {
		w, log := written(t)
		w.Step(logtest.RunStarted, logtest.Node("n1")[0], wire.Draft{
			Type:    wire.EventNodeSuspended,
			NodeID:  "n1",
			Payload: json.RawMessage(`{"reason":"x"}`),
		},
			wire.Draft{Type: wire.EventInterruptRequested, NodeID: "n1", Payload: json.RawMessage(
				`{"kind":"` + c.kind + `","nodeId":"n1","interruptId":"i","requestedAt":"2026-03-01T12:00:00.003Z","data":` + c.data + `}`)})
		require.Equal(t, c.want, projected(t, log).Waits().For, name)
	}
}

// C3d: an executing run is shown with its owner, also after other writers change it, and after a
// reload from the store.
func TestWaits_NamesTheOwnerOfTheRun(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	s := &shelf{perPage: 10}
	step := func(writer string, drafts ...wire.Draft) *project.Run {
		w.Append(w.Frame(subject.Step, drafts...).By(writer))
		return projected(t, log)
	}
	held := func(r *project.Run) string { return r.Waits().HeldBy }
	require.Equal(t, "d1", held(step("d1-7@1", logtest.RunStarted, logtest.Node("n1")[0])))
	require.Equal(t, "d2", held(step("d2-1@2", logtest.Log("on it"))))
	r := step(frame.ExternalPrefix+"d3-1", logtest.Log("psst"))
	require.Equal(t, "d2", held(r))

	for _, f := range log.Frames() {
		s.frames = append(s.frames, project.Stored(f)...)
	}
	again, err := project.Load(t.Context(), s, r.Row())
	require.NoError(t, err)
	require.Equal(t, r.Waits(), again.Waits())
}
