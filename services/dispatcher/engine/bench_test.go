package engine_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/metrics"
	"waybill.dev/waybill/services/dispatcher/node"
)

// BenchmarkExecute_NoopRun executes a run of one no-op node, without a disk.
func BenchmarkExecute_NoopRun(b *testing.B) {
	log := memory.New()
	x := engine.New(engine.Config{
		Limits:   machine.Limits{MaxNodeExecutions: 10, MaxDuration: time.Hour, MaxParallel: 4},
		AckWait:  3 * time.Second,
		MaxBatch: 64,
	}, engine.Deps{
		Storage:  engine.Storage{Log: log, Definitions: define(b, nodeJSON("a", "core.noop", "{}"))},
		Services: engine.Services{Redactor: &redactor{}, Acceptor: noAcceptor{}},
		Rules:    engine.Rules{Types: node.Builtin()},
		Timers: engine.Timers{
			Wait:   func(subject.Run, frame.Head, time.Time) {},
			Forget: func(string, string) {},
		},
		Telemetry: engine.Telemetry{Logger: slog.New(slog.DiscardHandler), Metrics: metrics.New(nil)},
		Clock:     time.Now,
	})
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		id := fmt.Sprintf("run_%d", n)
		rec, err := json.Marshal(&wire.RunRecord{
			RunID:         id,
			WorkflowID:    "wf",
			Owner:         wire.Owner{Tenant: "acme"},
			EngineVersion: 1,
			CreatedAt:     wire.FormatTime(time.Now()),
		})
		require.NoError(b, err)
		_, err = log.Append(b.Context(), frame.NewStart(subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: id}, rec), 0)
		require.NoError(b, err)
		d, err := log.Next(b.Context())
		require.NoError(b, err)
		x.Execute(b.Context(), d)
	}
}
