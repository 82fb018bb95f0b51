package project_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

func event(typ wire.EventType, cause, payload string) wire.Draft {
	return wire.Draft{Type: typ, CausationID: cause, Payload: json.RawMessage(payload)}
}

// substituted is an event of the model gate.
var substituted = event(wire.EventModelSubstituted, "", `{"nodeId":"n1","originalProvider":"house","originalModel":"small",
	"fallbackProvider":"openai","fallbackModel":"large","missingCapabilities":["reasoning"]}`)

// marksOf are marks in short.
func marksOf(marks []store.Mark) []string {
	var out []string
	for _, m := range marks {
		out = append(out, string(m.Name)+":"+m.Value)
	}
	return out
}

func TestFound_MarksARunByItsEvents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event wire.Draft
		want  []string
	}{
		"usage": {
			event(wire.EventProviderUsage, "", `{"provider":"openai","model":"m"}`),
			[]string{"provider:openai", "model:m"},
		},
		"answer of a question": {
			event(wire.EventInterruptResolved, "", `{"interruptId":"i"}`),
			[]string{"answered:2026-03-01"},
		},
		"refusal": {
			event(wire.EventEnvelopeRefusal, "", `{"provider":"gemini","model":"m"}`),
			[]string{"provider:gemini"},
		},
		"call that failed": {
			event(wire.EventNodeFailed, "", `{"error":{"code":"provider_unavailable","details":{"provider":"openai"}}}`),
			[]string{"provider:openai"},
		},
		"call that is tried again": {
			event(wire.EventNodeRetried, "", `{"lastError":{"details":{"provider":"openai"}}}`),
			[]string{"provider:openai"},
		},
		"kind that is not accepted": {
			event(wire.EventNodeFailed, "c", `{"error":{"details":{"refusedType":"media.file"}}}`),
			[]string{"kind:media.file"},
		},
		"kind that is discarded": {
			event(wire.EventLogAppended, "c", `{"fields":{"kind":"media.image","refusalMode":"discard-and-warn"}}`),
			[]string{"kind:media.image"},
		},
		"artifact": {
			event(wire.EventArtifactCreated, "c", `{"artifactType":"media.audio","artifactId":"e","payload":{}}`),
			[]string{"kind:media.audio"},
		},
		"envelope that is only logged": {
			event(wire.EventLogAppended, "c", `{"fields":{"envelopeType":"error","outcome":"accepted","payload":{}}}`),
			[]string{"kind:error"},
		},
		"clarification": {
			event(wire.EventClarificationRequested, "c", `{}`),
			[]string{"kind:clarification.request"},
		},
		"question of a node":      {event(wire.EventClarificationRequested, "", `{}`), nil},
		"artifact of a node":      {event(wire.EventArtifactCreated, "", `{"artifactType":"report"}`), nil},
		"log of a node":           {event(wire.EventLogAppended, "", `{"fields":{"kind":"x","refusalMode":"y"}}`), nil},
		"name without end":        {event(wire.EventProviderUsage, "", `{"provider":"`+strings.Repeat("x", 300)+`"}`), nil},
		"payload of another form": {event(wire.EventNodeFailed, "", `{"error":"x"}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, log := written(t)
			w.Step(logtest.RunStarted, tt.event, tt.event)
			r := projected(t, log)
			marks, _ := r.Found()
			require.Equal(t, tt.want, marksOf(marks))
			for _, m := range marks {
				require.Equal(t, project.Key(r.ID), m.Key)
				require.Equal(t, w.Record.CreatedAt, m.CreatedAt)
			}
			again, _ := r.Found()
			require.Empty(t, again)
		})
	}
}

func TestFound_IsBounded(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	for i := range 100 {
		w.Step(event(wire.EventProviderUsage, "", fmt.Sprintf(`{"provider":"p%d"}`, i)))
	}
	marks, _ := projected(t, log).Found()
	require.Len(t, marks, 64)
}

// A store whose frames are older than its marks lacks those of a run that is loaded.
func TestFound_OfALoadedRunIsAllMarksAndTheSubstitutionsAfter(t *testing.T) {
	t.Parallel()
	w, log := written(t)
	w.Step(logtest.RunStarted, substituted, event(wire.EventProviderUsage, "", `{"provider":"openai"}`))
	before := projected(t, log)
	stored := &shelf{perPage: 9}
	for _, f := range log.Frames() {
		stored.frames = append(stored.frames, project.Stored(f)...)
	}
	r, err := project.Load(t.Context(), stored, before.Row())
	require.NoError(t, err)
	w.Step(event(wire.EventProviderUsage, "", `{"provider":"openai"}`), event(wire.EventProviderUsage, "", `{"provider":"gemini"}`), substituted)
	require.NoError(t, r.Apply(log.Frames()[2]))
	marks, substitutions := r.Found()
	require.Equal(t, []string{"provider:openai", "provider:gemini"}, marksOf(marks))
	again, _ := r.Found()
	require.Empty(t, again)
	require.Len(t, substitutions, 1)
	require.Equal(t, 5, substitutions[0].Sequence)
}

func TestFound_ReportsSubstitutions(t *testing.T) {
	t.Parallel()
	want := store.Substitution{
		Sequence: 1,
		NodeID:   "n1",
		At:       "2026-03-01T12:00:00.001Z",
		Original: modelgate.Model{Provider: "house", Model: "small"},
		Fallback: modelgate.Model{Provider: "openai", Model: "large"},
		Missing:  []string{"reasoning"},
	}
	for name, tt := range map[string]struct {
		fork *wire.Fork
		want []store.Substitution
	}{
		"a run":               {nil, []store.Substitution{want}},
		"a branch, inherited": {&wire.Fork{Mode: wire.ForkBranch, FromSeq: 2}, nil},
		"a branch, again":     {&wire.Fork{Mode: wire.ForkBranch, FromSeq: 1}, []store.Substitution{want}},
		"a replay":            {&wire.Fork{Mode: wire.ForkReplay, FromSeq: 0, Head: 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := memory.New()
			rec := logtest.Record("run-1")
			rec.Fork = tt.fork
			w := logtest.Begin(t, log, rec)
			w.Step(logtest.RunStarted, substituted)
			r := projected(t, log)
			_, got := r.Found()
			for i := range tt.want {
				tt.want[i].Key = project.Key(r.ID)
			}
			require.Equal(t, tt.want, got)
		})
	}
}
