package seam_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/seam"
)

// processes returns exercisers that share only their records, like the processes of one
// host, before and after a restart.
func processes(t *testing.T, n int) []*fixture {
	t.Helper()
	records := kvmemory.New()
	out := make([]*fixture, n)
	for i := range out {
		f := newFixture(t)
		f.memory = memory{t, seam.NewShared(records, f.x.Clock)}
		f.x.Store, f.x.Log = f.memory.Shared, f.memory.Shared
		out[i] = f
	}
	return out
}

// OpenWOP envelope contract §23, distribution; §23.1, persistedDedup.
func TestShared_ASecondProcessSeesWhatTheFirstDecided(t *testing.T) {
	t.Parallel()
	p := processes(t, 2)
	inRun := body{
		"envelope":       envelope("clarification.request", good),
		"persistedDedup": body{"runId": "r1"},
		"counters":       body{"envelopesPerTurn": counter(1, 1)},
		"projectTo":      body{"runId": "r"},
	}
	breached := p[0].raw(inRun)
	require.Contains(t, breached, "breached")
	delete(inRun, "counters")
	require.Equal(t, breached, p[1].raw(inRun), "whatever the status")

	accepted := p[1].raw(body{
		"envelope":  envelope("error", `{"code":"x","message":"<y>"}`, "correlationId", "c2"),
		"projectTo": body{"runId": "r"},
	})
	require.Equal(t, accepted, p[0].raw(body{
		"envelope":  envelope("error", `{"code":"x","message":"other"}`, "correlationId", "c2"),
		"projectTo": body{"runId": "r"},
	}))
	require.Equal(t, []string{
		"cap.breached", "node.failed", "log.appended",
	}, p[0].types("r"), "one log, in order, each outcome once")

	off := false
	p[0].memory.set(seam.CapabilityEnvelopes, &off)
	require.Equal(t, "capability_required", p[1].exercise(body{"envelope": 7}).Reason)
	require.NoError(t, p[1].memory.Reset(t.Context(), tenant))
	require.Equal(t, "accepted", p[0].exercise(inRun).Status)
}

// If two processes race, both return the outcome of the first.
func TestShared_ARaceHasOneOutcome(t *testing.T) {
	t.Parallel()
	p := processes(t, 4)
	for round := range 10 {
		text, err := json.Marshal(body{
			"envelope":       envelope("clarification.request", good, "correlationId", fmt.Sprint("c-", round)),
			"persistedDedup": body{"runId": "r"},
			"projectTo":      body{"runId": "r"},
		})
		require.NoError(t, err)
		var (
			wg       sync.WaitGroup
			outcomes [4]string
		)
		for i, f := range p {
			wg.Go(func() {
				own := strings.Replace(string(text), "env-1", fmt.Sprint("env-", i), 1)
				out, err := f.x.Exercise(context.WithoutCancel(t.Context()), tenant, []byte(own))
				if err != nil {
					t.Error(err)
				}
				outcomes[i] = string(out)
			})
		}
		wg.Wait()
		for _, o := range outcomes {
			require.Equal(t, outcomes[0], o)
		}
		require.Len(t, p[0].memory.events(tenant, "r"), 2*(round+1), "and it caused its events once")
	}
}

// A process that crashes between the events and the outcome leaves events. The next
// request returns an outcome with those events.
func TestShared_ACrashBeforeTheOutcomeDuplicatesNoEvents(t *testing.T) {
	t.Parallel()
	p := processes(t, 2)
	b := body{"envelope": envelope("clarification.request", good), "projectTo": body{"runId": "r", "nodeId": "n"}}
	refused := body{"envelope": envelope("clarification.request", `{}`), "projectTo": body{"runId": "r", "nodeId": "n"}}
	require.Equal(t, "invalid", p[0].exercise(refused).Status)

	dying := flaky{Shared: p[0].memory.Shared, fails: "save"}
	p[0].x.Store = dying
	text, err := json.Marshal(b)
	require.NoError(t, err)
	_, err = p[0].x.Exercise(t.Context(), tenant, text)
	require.ErrorIs(t, err, errDown)
	before := p[1].memory.events(tenant, "r")
	require.Equal(t, []string{"node.failed", "clarification.requested", "interrupt.requested"}, p[1].types("r"))

	o := p[1].exercise(b)
	require.Equal(t, "accepted", o.Status)
	require.Equal(t, before, p[1].memory.events(tenant, "r"), "nothing was added")
	require.Equal(t, []string{before[1].EventID, before[2].EventID}, o.RecordedEventIDs, "those of the acceptance, not of the refusal before it")
}

func TestSave_KeepsTheFirstOutcome(t *testing.T) {
	t.Parallel()
	s := seam.NewShared(kvmemory.New(), time.Now)
	k := seam.Key{Tenant: tenant, RunID: "r", CorrelationID: "c"}
	for i, outcome := range []string{`{"n":1}`, `{"n":2}`} {
		kept, err := s.Save(t.Context(), k, seam.StoredOutcome{EnvelopeType: "error", Outcome: json.RawMessage(outcome)})
		require.NoError(t, err)
		require.JSONEq(t, `{"n":1}`, string(kept.Outcome), i)
	}
}

func TestReset_DeletesTheStateOfOneTenant(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	text, err := json.Marshal(body{
		"envelope":       envelope("error", `{"code":"x","message":"y"}`),
		"projectTo":      body{"runId": "r"},
		"persistedDedup": body{"runId": "r"},
	})
	require.NoError(t, err)
	off := false
	for _, of := range []string{tenant, "globex"} {
		_, err := f.x.Exercise(t.Context(), of, text)
		require.NoError(t, err)
		require.NoError(t, f.memory.SetCapability(t.Context(), of, "x", &off))
	}
	require.NoError(t, f.memory.Reset(t.Context(), tenant))
	for of, want := range map[string]int{tenant: 0, "globex": 1} {
		require.Len(t, f.memory.events(of, "r"), want)
		require.Len(t, f.memory.spans(of, "r"), want)
		require.Len(t, f.memory.spans(of, ""), want)
		overlay, err := f.memory.Overlay(t.Context(), of)
		require.NoError(t, err)
		require.Len(t, overlay, want)
		for _, run := range []string{"", "r"} {
			_, found, err := f.memory.Load(t.Context(), seam.Key{Tenant: of, RunID: run, CorrelationID: "corr-1"})
			require.NoError(t, err)
			require.Equal(t, want == 1, found)
		}
	}
}

func TestAppend_NumbersWithoutAGapOverProcesses(t *testing.T) {
	t.Parallel()
	p := processes(t, 4)
	var wg sync.WaitGroup
	for _, f := range p {
		wg.Go(func() {
			for range 10 {
				drafts := []wire.Draft{{Type: wire.EventCapBreached}, {Type: wire.EventNodeFailed}}
				if _, err := f.memory.Append(context.WithoutCancel(t.Context()), tenant, "r", drafts); err != nil {
					t.Error(err)
				}
				if err := f.memory.Trace(context.WithoutCancel(t.Context()), tenant, "r", seam.Span{Name: "s"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	events := p[0].memory.events(tenant, "r")
	require.Len(t, events, 80)
	for i, e := range events {
		require.Equal(t, i, e.Sequence)
		require.Equal(t, []wire.EventType{wire.EventCapBreached, wire.EventNodeFailed}[i%2], e.Type, "what was appended together stays together")
	}
	for i, s := range p[0].memory.spans(tenant, "r") {
		require.Equal(t, i, s.Index)
	}
}

func TestShared_IsBounded(t *testing.T) {
	t.Parallel()
	s := seam.NewShared(kvmemory.New(), time.Now)
	_, err := s.Append(t.Context(), tenant, "long", make([]wire.Draft, 10_000))
	require.NoError(t, err)
	_, err = s.Append(t.Context(), tenant, "long", make([]wire.Draft, 1))
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err))
	_, err = s.Append(t.Context(), tenant, "large", []wire.Draft{{
		Type:    wire.EventLogAppended,
		Payload: json.RawMessage(`"` + strings.Repeat("x", 3<<20) + `"`),
	}})
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err))
	require.Empty(t, memory{t, s}.events(tenant, "large"))

	on := true
	for i := range 256 {
		require.NoError(t, s.SetCapability(t.Context(), tenant, fmt.Sprint("cap-", i), &on))
	}
	require.Equal(t, fault.InvalidArgument, fault.CodeOf(s.SetCapability(t.Context(), tenant, "one-more", &on)))
	require.Equal(t, fault.InvalidArgument, fault.CodeOf(s.SetCapability(t.Context(), "other", strings.Repeat("x", 257), &on)))
	require.NoError(t, s.SetCapability(t.Context(), tenant, "cap-0", &on), "one that is there may be set again")
	require.NoError(t, s.SetCapability(t.Context(), tenant, "cap-0", nil))
	require.NoError(t, s.SetCapability(t.Context(), tenant, "one-more", &on))
}

// unreachable is an unavailable store.
type unreachable struct{ kv.Store }

func (unreachable) Get(context.Context, string) (kv.Entry, error) {
	return kv.Entry{}, fmt.Errorf("%w: no answer", kv.ErrUnavailable)
}

func TestShared_ReportsAnUnavailableStore(t *testing.T) {
	t.Parallel()
	s, ctx := seam.NewShared(unreachable{kvmemory.New()}, time.Now), t.Context()
	_, _, load := s.Load(ctx, seam.Key{})
	_, save := s.Save(ctx, seam.Key{}, seam.StoredOutcome{})
	_, log := s.Append(ctx, tenant, "r", make([]wire.Draft, 1))
	_, once := s.AppendOnce(ctx, tenant, "r", "c", make([]wire.Draft, 1))
	_, events := s.Events(ctx, tenant, "r")
	_, spans := s.Spans(ctx, tenant, "")
	_, overlay := s.Overlay(ctx, tenant)
	for _, err := range []error{
		load, save, log, once, events, spans, overlay, s.Reset(ctx, tenant), s.ResetOverlay(ctx, tenant),
		s.Trace(ctx, tenant, "r", seam.Span{}),
	} {
		require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
		require.ErrorIs(t, err, kv.ErrUnavailable)
	}
}
