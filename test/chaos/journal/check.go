package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/internal/runcheck"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/test/harness"
)

const (
	// endTimeout is how long a run may take to end once the host is healthy again.
	endTimeout = 2 * time.Minute
	// readers is the number of concurrent readers.
	readers = 4
)

// Check compares a healthy host with the journal. Each acknowledged run exists and ends, and its
// log is in order without duplicates. For runs with concurrent clients, their answers are
// linearizable.
func (j *Journal) Check(t testing.TB, host *harness.Host) {
	t.Helper()
	runs := j.Runs()
	t.Log(j)
	if !assert.NotEmpty(t, runs) {
		return
	}
	ids := make(chan string)
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			c := host.Client(Key)
			for id := range ids {
				j.checkRun(t, c, id, runs[id])
			}
		})
	}
	for id := range runs {
		ids <- id
	}
	close(ids)
	wg.Wait()
	j.checkHistories(t)
}

func (j *Journal) checkRun(t testing.TB, c *harness.Client, id, workflow string) {
	ctx, cancel := context.WithTimeout(t.Context(), endTimeout)
	defer cancel()
	if workflow == GateWorkflow && settle(ctx, c, id) { // it may still be unanswered
		j.answer(ctx, c, 0, id, "accept")
	}
	events, err := c.Finish(ctx, id)
	for err != nil && ctx.Err() == nil { // a service may be briefly unavailable
		j.failed(ctx)
		events, err = c.Finish(ctx, id)
	}
	if err != nil {
		t.Errorf("run %s of %s must exist and end: %v", id, workflow, err)
		return
	}
	CheckLog(t, id, workflow, events)
	if workflow == GateWorkflow {
		j.read(ctx, c, 0, id)
	}
}

func (j *Journal) checkHistories(t testing.TB) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for run, history := range j.history {
		if porcupine.CheckOperationsTimeout(model(), history, endTimeout) == porcupine.Ok {
			continue
		}
		t.Errorf("run %s: the answers to its clients are not linearizable:", run)
		for _, op := range history {
			t.Logf("client %d %12d..%d %+v → %+v", op.ClientId, op.Call, op.Return, op.Input, op.Output)
		}
	}
}

// CheckLog checks one run's log against the rules that hold under any fault.
func CheckLog(t testing.TB, id, workflow string, events []harness.Event) {
	t.Helper()
	k, artifacts := runcheck.New(runcheck.Source{}), 0
	for _, e := range events {
		var whole wire.Event
		if err := json.Unmarshal(e.Raw, &whole); err != nil {
			t.Errorf("run %s: event %d: %v", id, e.Sequence, err)
			return
		}
		k.Add(whole)
		if whole.Type == wire.EventArtifactCreated {
			artifacts++
		}
	}
	assert.Empty(t, k.Findings(), "run %s: %s", id, types(events))
	assert.Equal(t, id, k.RunID())
	assert.True(t, k.Status().Terminal(), "run %s ends: %s", id, types(events))
	if workflow == "triage" {
		assert.Equal(t, 1, artifacts, "run %s: one accepted envelope\n%s", id, types(events)+" "+string(events[len(events)-1].Payload))
	}
}

// types lists a log's event types, each with the time since the first, to show where it stalled.
func types(events []harness.Event) string {
	var (
		out   []string
		first time.Time
	)
	for i, e := range events {
		var v struct{ Timestamp time.Time }
		_ = json.Unmarshal(e.Raw, &v) // an event without a time shows as 0
		if i == 0 {
			first = v.Timestamp
		}
		out = append(out, fmt.Sprintf("%s+%.3gs", e.Type, v.Timestamp.Sub(first).Seconds()))
	}
	return strings.Join(out, " ")
}
