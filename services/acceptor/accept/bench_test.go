package accept_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/accept/accepttest"
)

// perRun is the number of envelopes per run of the benchmark: as many as in a long
// conversation, and far fewer than a ledger caches.
const perRun = 100

// BenchmarkAccept accepts envelopes of 2 KB over a log in memory, so it measures the
// pipeline alone. It times single accepts, since a mean hides slow ones.
func BenchmarkAccept(b *testing.B) {
	f := newFixture(b)
	_, err := f.kinds.Register(accepttest.Kind, accepttest.Version, []byte(accepttest.Schema))
	require.NoError(b, err)
	var (
		took = make([]time.Duration, 0, 1<<16)
		docs = envelopes(perRun)
		p    *accept.Pipeline
		at   accept.Target
	)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%perRun == 0 {
			b.StopTimer()
			f.log = memory.New()
			p, at = f.pipeline(), f.started(fmt.Sprint("run-", i/perRun))
			b.StartTimer()
		}
		began := time.Now()
		res, err := p.Run(context.Background(), accept.Request{Target: at, Document: docs[i%perRun], NodeID: nodeID})
		took = append(took, time.Since(began))
		if err != nil || res.Refusal != nil {
			b.Fatal(err, res.Refusal)
		}
		at.Head = res.Head
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-us")
}

// BenchmarkAccept_SchemaAlone is the lower bound of BenchmarkAccept: schema validation of
// the same payload.
func BenchmarkAccept_SchemaAlone(b *testing.B) {
	s, err := schema.Compile(accepttest.Kind, []byte(accepttest.Schema))
	require.NoError(b, err)
	payload := []byte(accepttest.Payload())
	b.ReportAllocs()
	for b.Loop() {
		if wrong := s.Validate(payload); wrong != nil {
			b.Fatal(wrong)
		}
	}
}

func envelopes(n int) [][]byte {
	docs := make([][]byte, n)
	for i := range docs {
		docs[i] = accepttest.Envelope(fmt.Sprintf("corr-%04d", i))
	}
	return docs
}

// started starts another run and returns its head.
func (f *fixture) started(id string) accept.Target {
	f.t.Helper()
	run := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: id}
	start := frame.NewStart(run, []byte(`{"runId":"`+id+`"}`))
	pos, err := f.log.Append(context.Background(), start, 0)
	require.NoError(f.t, err)
	start.Pos = pos
	begun := frame.New(run, subject.Step, start.Head(), []wire.Event{wire.Draft{Type: wire.EventRunStarted}.Place(id, start.Head().Next, f.clock())})
	begun.Pos, err = f.log.Append(context.Background(), begun, pos)
	require.NoError(f.t, err)
	return accept.Target{Run: run, Head: begun.Head()}
}
