package snapshot_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/machine"
)

var (
	at     = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	theRun = subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_1"}
	byID   = subject.Run{Tenant: "acme", RunID: "run_1"}
	secret = []byte(strings.Repeat("s", 32))
)

// writer appends the events of nodes that ask models.
type writer struct {
	log  runlog.Log
	run  subject.Run
	head frame.Head
	node int
}

func begin(t testing.TB, log runlog.Log, r subject.Run, change func(*wire.RunRecord)) *writer {
	t.Helper()
	rec := &wire.RunRecord{
		RunID:         r.RunID,
		WorkflowID:    r.WorkflowID,
		Owner:         wire.Owner{Tenant: r.Tenant},
		CreatedAt:     wire.FormatTime(at),
		EngineVersion: wire.EngineVersion,
		Inputs:        map[string]json.RawMessage{"a": json.RawMessage(`{"text":"<hello>"}`)},
		Channels:      map[string]wire.Channel{"notes": {Reducer: "append", TTLMillis: 60_000}},
	}
	change(rec)
	body, err := json.Marshal(rec)
	require.NoError(t, err)
	f := frame.NewStart(r, body)
	f.Pos, err = log.Append(t.Context(), f, 0)
	require.NoError(t, err)
	w := &writer{log: log, run: r, head: f.Head()}
	w.append(t, subject.Step, wire.Draft{Type: wire.EventRunStarted, Payload: json.RawMessage(`{}`)})
	return w
}

func unchanged(*wire.RunRecord) {}

func (w *writer) append(t testing.TB, kind subject.Kind, drafts ...wire.Draft) {
	t.Helper()
	events := make([]wire.Event, len(drafts))
	for i, d := range drafts {
		events[i] = d.Place(w.run.RunID, w.head.Next+i, at.Add(time.Duration(w.head.Next+i)*time.Second))
	}
	f := frame.New(w.run, kind, w.head, events).By("P-1")
	var err error
	f.Pos, err = w.log.Append(t.Context(), f, w.head.Pos)
	require.NoError(t, err)
	w.head = f.Head()
}

// nodes appends n nodes of 10 events each.
func (w *writer) nodes(t testing.TB, n int) {
	t.Helper()
	for range n {
		w.node++
		id := fmt.Sprint("node-", w.node)
		draft := func(typ wire.EventType, payload string, args ...any) wire.Draft {
			return wire.Draft{Type: typ, NodeID: id, Payload: fmt.Appendf(nil, payload, args...)}
		}
		text := strings.Repeat("A sentence of the model's answer. ", 6)
		w.append(t, subject.Step, draft(wire.EventNodeStarted, `{"nodeId":%q,"typeId":"core.ai.callPrompt","attempt":0}`, id))
		w.append(t, subject.Step,
			draft(wire.EventPromptComposed, `{"refs":["a@1"],"hash":"%064d"}`, w.node), draft(wire.EventOutputChunk, `{"nodeId":%q,"chunk":%q}`, id, text),
			draft(wire.EventOutputChunk, `{"nodeId":%q,"chunk":%q}`, id, text), draft(wire.EventOutputChunk, `{"nodeId":%q,"chunk":%q}`, id, text))
		artifact := draft(wire.EventArtifactCreated, `{"artifactId":"art-%d","artifactType":"note","payload":{"text":%q}}`, w.node, text)
		artifact.CausationID = fmt.Sprint("env-", w.node)
		w.append(t, subject.Step,
			draft(wire.EventProviderUsage, `{"nodeId":%q,"provider":"p","model":"m","inputTokens":100,"outputTokens":50,"costEstimateUsd":0.001}`, id), artifact,
			draft(wire.EventChannelWritten, `{"channel":"notes","value":%d,"reducer":"append"}`, w.node),
			draft(wire.EventVariableChanged, `{"name":"last","next":%q}`, text),
			draft(wire.EventNodeCompleted, `{"nodeId":%q,"outputs":{"text":%q}}`, id, text))
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func keeper(t testing.TB, log runlog.Reader, s kv.Store, done func(snapshot.Result)) *snapshot.Keeper {
	t.Helper()
	store, err := snapshot.NewStore(s, secret)
	require.NoError(t, err)
	return snapshot.New(snapshot.Deps{Log: log, Store: store, Logger: quiet(), Done: done})
}

// written has a keeper write the snapshot of a run.
func written(t testing.TB, log runlog.Reader, s kv.Store, r subject.Run) snapshot.Result {
	t.Helper()
	results := make(chan snapshot.Result, 16)
	k := keeper(t, log, s, func(r snapshot.Result) { results <- r })
	frames, err := log.Run(t.Context(), r)
	require.NoError(t, err)
	st, _, err := machine.Load(frames)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan struct{})
	go func() { defer close(over); _ = k.Run(ctx) }()
	k.Offer(st)
	got := <-results
	cancel()
	<-over
	return got
}
