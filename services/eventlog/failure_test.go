package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/store"
)

// faultyStore wraps a store and fails reads on demand.
type faultyStore struct {
	store.Store
	mu   sync.Mutex
	errs map[string]error          // by method
	edit func(f []store.Frame)     // what Frames hands out
	gate func(ctx context.Context) // called by Frames first
}

// fail makes methods fail once each.
func (f *faultyStore) fail(err error, methods ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = map[string]error{}
	for _, m := range methods {
		f.errs[m] = err
	}
}

// tamper makes Frames hand out other frames, and wait at a gate, until it is
// called with nil.
func (f *faultyStore) tamper(edit func(f []store.Frame), gate func(ctx context.Context)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.edit, f.gate = edit, gate
}

func (f *faultyStore) take(method string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.errs[method]
	delete(f.errs, method)
	return err
}

func (f *faultyStore) Run(ctx context.Context, key store.Key) (store.Run, error) {
	if err := f.take("Run"); err != nil {
		return store.Run{}, err
	}
	return f.Store.Run(ctx, key)
}

func (f *faultyStore) Frames(ctx context.Context, key store.Key, from, limit int) ([]store.Frame, error) {
	if err := f.take("Frames"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	edit, gate := f.edit, f.gate
	f.mu.Unlock()
	if gate != nil {
		gate(ctx)
	}
	frames, err := f.Store.Frames(ctx, key, from, limit)
	if edit != nil {
		edit(frames)
	}
	return frames, err
}

func (f *faultyStore) List(ctx context.Context, q store.Query) ([]store.Run, error) {
	if err := f.take("List"); err != nil {
		return nil, err
	}
	return f.Store.List(ctx, q)
}

func (f *faultyStore) Due(ctx context.Context, beforeMs int64, after store.Timer, limit int) ([]store.Run, error) {
	if err := f.take("Due"); err != nil {
		return nil, err
	}
	return f.Store.Due(ctx, beforeMs, after, limit)
}

func (f *faultyStore) Owned(ctx context.Context, process string, after store.Key, limit int) ([]store.Run, error) {
	if err := f.take("Owned"); err != nil {
		return nil, err
	}
	return f.Store.Owned(ctx, process, after, limit)
}

func (f *faultyStore) Substitutions(ctx context.Context, tenant, since string, limit int) ([]store.Substitution, error) {
	if err := f.take("Substitutions"); err != nil {
		return nil, err
	}
	return f.Store.Substitutions(ctx, tenant, since, limit)
}

// reads are the RPCs with the method of the store that each fails by.
func reads(r *rig, ctx context.Context) []struct {
	name, method string
	call         func() error
} {
	return []struct {
		name, method string
		call         func() error
	}{
		{"GetRun, not cached yet,", "Frames", func() error {
			_, err := r.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: logtest.Tenant, RunId: "run-1"})
			return err
		}},
		{"GetRun", "Run", func() error {
			_, err := r.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: logtest.Tenant, RunId: "run-1"})
			return err
		}},
		{"ReadEvents", "Frames", func() error {
			_, err := r.ReadEvents(ctx, &eventlogv1.ReadEventsRequest{Tenant: logtest.Tenant, RunId: "run-1", After: -1})
			return err
		}},
		{"Follow", "Frames", func() error { return firstError(r, ctx, logtest.Tenant, "run-1") }},
		{"Follow with snapshots", "Frames", func() error {
			s, err := r.Follow(ctx, &eventlogv1.FollowRequest{Tenant: logtest.Tenant, RunId: "run-1", Snapshots: true})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		}},
		{"ListRuns", "List", func() error {
			_, err := r.ListRuns(ctx, &eventlogv1.ListRunsRequest{Tenant: logtest.Tenant})
			return err
		}},
		{"ListSubstitutions", "Substitutions", func() error {
			_, err := r.ListSubstitutions(ctx, &eventlogv1.ListSubstitutionsRequest{
				Tenant: logtest.Tenant,
				Since:  wire.FormatTime(logtest.Epoch),
			})
			return err
		}},
		{"ListOwnedRuns", "Owned", func() error {
			_, err := r.ListOwnedRuns(ctx, &eventlogv1.ListOwnedRunsRequest{Process: "d1"})
			return err
		}},
		{"ListDueTimers", "Due", func() error {
			_, err := r.ListDueTimers(ctx, &eventlogv1.ListDueTimersRequest{BeforeUnixMs: 1})
			return err
		}},
	}
}

func TestReads_OfAFailingStoreAreUnavailableWithoutDetails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	logtest.Whole(t, r.log, "run-1")
	require.Len(t, r.read(t, "run-1", -1, 0).GetEvents(), 4)
	for _, tt := range reads(r, within(t)) {
		r.svc.ForgetViews()
		r.store.fail(errors.New("disk /var/secret is on fire"), tt.method)
		err := tt.call()
		require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""), "%s, %s", tt.name, tt.method)
		require.NotContains(t, err.Error(), "secret", "%s, %s", tt.name, tt.method)
		require.NoError(t, tt.call(), "%s works again", tt.name)
	}
}

func TestReads_ThatFindDamageHaveTheStoreRebuilt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := logtest.Whole(t, r.log, "run-1")
	for _, tt := range reads(r, within(t)) {
		require.Eventually(t, func() bool { return r.svc.Ready() == nil }, patience, time.Millisecond)
		before := r.svc.Rebuilds()
		r.svc.ForgetViews()
		r.store.fail(fmt.Errorf("%w: page 7", store.ErrDamaged), tt.method)
		require.ErrorIs(t, tt.call(), fault.New(fault.ServiceUnavailable, ""), "%s, %s", tt.name, tt.method)
		require.Eventually(t, func() bool { return r.svc.Rebuilds() > before }, patience, time.Millisecond, tt.name)
		require.Eventually(t, func() bool { return tt.call() == nil }, patience, time.Millisecond, tt.name)
	}
	got, err := r.get(t, "run-1")
	require.NoError(t, err)
	require.Equal(t, w.Snapshot(), string(got.GetSnapshot()))
}

func TestReads_OfFramesThatDoNotHoldTheirEventsFindDamage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := logtest.Whole(t, r.log, "run-1")
	for _, body := range []string{`{}`, `[{}]`, `[{"sequence":"x"},1,2,3]`} {
		require.Eventually(t, func() bool { return r.svc.Ready() == nil }, patience, time.Millisecond)
		require.Equal(t, w.Docs(0), docs(t, w, r.read(t, "run-1", -1, 0).GetEvents()))
		before := r.svc.Rebuilds()
		r.store.tamper(func(frames []store.Frame) {
			for i := range frames {
				if frames[i].First >= 0 {
					frames[i].Body = []byte(body)
				}
			}
		}, nil)
		s := r.follow(t, within(t), "run-1", 0, true)
		_, err := s.Recv()
		require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""), body)
		r.store.tamper(nil, nil)
		require.Eventually(t, func() bool { return r.svc.Rebuilds() > before }, patience, time.Millisecond)
	}
}

// A store emptied between the read of a run's row and of its events must not return an ended run
// without events.
func TestReadEvents_OfAnEmptiedStoreIsUnavailable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	logtest.Whole(t, r.log, "run-1")
	require.Len(t, r.read(t, "run-1", -1, 0).GetEvents(), 4)
	var emptied error
	r.store.tamper(nil, func(ctx context.Context) { emptied = r.store.Rebuild(ctx) })
	got, err := r.ReadEvents(within(t), &eventlogv1.ReadEventsRequest{Tenant: logtest.Tenant, RunId: "run-1", After: -1})
	require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""), got)
	require.NoError(t, emptied)
}

// One reader folds a run; the others wait for it, each up to its own deadline.
func TestGetRun_WaitsForAnotherReaderNoLongerThanItsCaller(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := logtest.Whole(t, r.log, "run-1")
	require.NotEmpty(t, r.read(t, "run-1", -1, 0).GetEvents())
	folding, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.store.tamper(nil, func(context.Context) {
		once.Do(func() { close(folding) })
		<-proceed
	})
	first := make(chan error, 1)
	go func() {
		got, err := r.get(t, "run-1")
		if err == nil && string(got.GetSnapshot()) != w.Snapshot() {
			err = errors.New("not the run's snapshot")
		}
		first <- err
	}()
	<-folding
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := r.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: logtest.Tenant, RunId: "run-1"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(proceed)
	require.NoError(t, <-first)
}

func TestReadEvents_ReportsARunThatBreaksWhileWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	done := make(chan error, 1)
	go func() { _, err := waiting(t, r, -1, time.Minute); done <- err }()
	r.followed(t, 1)
	forged := *w
	forged.Head.Hash = "another hash"
	w.Append(forged.Frame(subject.Step, logtest.Log("x")))
	require.ErrorIs(t, <-done, fault.New(fault.LogDamaged, ""))
}

// An ended run cannot change: once rendered, its snapshot needs neither log nor store.
func TestGetRun_ServesAnEndedRunFromMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := logtest.Whole(t, r.log, "run-1")
	_, err := r.get(t, "run-1")
	require.NoError(t, err)
	r.log.FailReads(errors.New("log is down"))
	r.store.fail(errors.New("disk is on fire"), "Run")
	got, err := r.get(t, "run-1")
	require.NoError(t, err)
	require.Equal(t, w.Snapshot(), string(got.GetSnapshot()))
}
