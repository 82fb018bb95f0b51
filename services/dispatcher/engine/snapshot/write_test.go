package snapshot_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
)

// working runs a keeper while do runs.
func working(t *testing.T, k *snapshot.Keeper, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- k.Run(ctx) }()
	do()
	cancel()
	require.NoError(t, <-over)
}

func has(t *testing.T, s kv.Store) bool {
	t.Helper()
	_, err := s.Get(t.Context(), snapshot.Place(theRun))
	if err != nil {
		require.ErrorIs(t, err, kv.ErrNotFound)
	}
	return err == nil
}

// A session's state may contain values that the redactor removed from the log. The snapshot is folded
// from the log.
func TestOffer_StoresWhatTheLogHas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, s := memory.New(), kvmemory.New()
		begin(t, log, theRun, unchanged).nodes(t, 30)
		k := keeper(t, log, s, nil)
		st, _ := whole(t, log)
		st.Variables["last"] = json.RawMessage(`"hunter2-secret"`)
		working(t, k, func() { k.Offer(st); synctest.Wait() })
		require.True(t, has(t, s))
		want, _ := whole(t, log)
		f, err := k.Read(t.Context(), byID, snapshot.Latest)
		require.NoError(t, err)
		require.Equal(t, 301, f.From)
		require.Equal(t, want, f.State)
	})
}

// No snapshot is made of these runs.
func TestOffer_LeavesOutRunsThatMayHaveNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record func(*wire.RunRecord)
		end    bool
	}{
		"masked":            {record: func(r *wire.RunRecord) { r.Masking = "hash" }},
		"of a later engine": {record: func(r *wire.RunRecord) { r.EngineVersion = wire.EngineVersion + 1 }},
		"ended":             {record: unchanged, end: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, s := memory.New(), kvmemory.New()
				w := begin(t, log, theRun, c.record)
				w.nodes(t, 30)
				if c.end {
					w.append(t, subject.End, wire.Draft{Type: wire.EventRunCompleted, Payload: json.RawMessage(`{}`)})
				}
				st, _ := whole(t, log)
				open := runstate.New(&wire.RunRecord{RunID: theRun.RunID, WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}})
				k := keeper(t, log, s, nil)
				working(t, k, func() {
					k.Offer(st)
					k.Offer(open) // whatever a caller takes the run for
					synctest.Wait()
				})
				require.False(t, has(t, s))
			})
		})
	}
}

// A snapshot is written again once enough events came, and not before.
func TestOffer_RenewsASnapshotAfterEnoughEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, s := memory.New(), kvmemory.New()
		w := begin(t, log, theRun, unchanged)
		w.nodes(t, 30)
		got, done := results()
		k := keeper(t, log, s, done)
		st, _ := whole(t, log)
		working(t, k, func() {
			for range 3 {
				k.Offer(st)
				synctest.Wait()
			}
			w.nodes(t, snapshot.Every/10)
			k.Offer(st)
			synctest.Wait()
		})
		require.Equal(t, []snapshot.Result{snapshot.Written, snapshot.Written}, *got)
		f, err := k.Read(t.Context(), byID, snapshot.Latest)
		require.NoError(t, err)
		require.Equal(t, 501, f.From)
	})
}

// Two processes write snapshots of one run, and either one is valid.
func TestRead_TakesAnOlderSnapshotThatOverwroteALaterOne(t *testing.T) {
	t.Parallel()
	log, s, w := long(t)
	older := value(t, s)
	w.nodes(t, 30)
	require.Equal(t, snapshot.Written, written(t, log, s, theRun))
	put(t, s, older)
	want, _ := whole(t, log)
	f, err := keeper(t, log, s, nil).Read(t.Context(), byID, snapshot.Latest)
	require.NoError(t, err)
	require.Equal(t, 301, f.From)
	require.Equal(t, want, f.State)
}

func TestEnded_RemovesTheSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, s, _ := long(t)
		k := keeper(t, log, s, nil)
		st, _ := whole(t, log)
		working(t, k, func() {
			k.RemoveEnded(st)
			synctest.Wait()
			require.False(t, has(t, s))
			k.RemoveEnded(st) // there is none
			synctest.Wait()
		})
	})
}

// gate is a store whose writes wait, and may fail.
type gate struct {
	kv.Store
	wait chan struct{}
	fail error
}

func (g *gate) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if g.wait != nil {
		<-g.wait
	}
	if g.fail != nil {
		return 0, g.fail
	}
	return g.Store.Put(ctx, key, value)
}

// The snapshot of a run that ends while it is written is deleted.
func TestEnded_RemovesASnapshotThatIsBeingWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, s := memory.New(), kvmemory.New()
		begin(t, log, theRun, unchanged).nodes(t, 30)
		g := &gate{Store: s, wait: make(chan struct{})}
		k := keeper(t, log, g, nil)
		st, _ := whole(t, log)
		working(t, k, func() {
			k.Offer(st)
			synctest.Wait()
			k.RemoveEnded(st)
			close(g.wait)
			synctest.Wait()
		})
		require.False(t, has(t, s))
	})
}

// A keeper that is stopped before its write leaves the previous snapshot, which is still valid.
func TestRun_StopsWithoutTheWrite(t *testing.T) {
	t.Parallel()
	log, s, w := long(t)
	w.nodes(t, 30)
	st, _ := whole(t, log.Log)
	k := keeper(t, log, s, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.Offer(st)
	require.NoError(t, k.Run(ctx))
	f, err := keeper(t, log, s, nil).Read(t.Context(), byID, snapshot.Latest)
	require.NoError(t, err)
	require.Equal(t, 301, f.From)
	require.Equal(t, st, f.State)
}

// Offer does not block: it drops and counts what exceeds the queue.
func TestOffer_DropsWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	got, done := results()
	k := keeper(t, memory.New(), kvmemory.New(), done)
	for i := range snapshot.MaxWaiting + 2 {
		st := runstate.New(&wire.RunRecord{RunID: fmt.Sprint(i), WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}})
		k.Offer(st)
		k.Offer(st) // it waits already
	}
	require.Len(t, *got, 4)
	require.Equal(t, snapshot.Dropped, (*got)[0])
}

// A state that is too large, or a store that takes nothing, does not cost a read of the whole log
// after each 200 events.
func TestOffer_DoesNotTryARunAgainThatCannotBeStored(t *testing.T) {
	t.Parallel()
	noise := make([]byte, snapshot.MaxBytes)
	_, _ = rand.Read(noise)
	for want, c := range map[snapshot.Result]struct {
		input string
		fail  error
	}{
		snapshot.TooLarge: {input: base64.StdEncoding.EncodeToString(noise)},
		snapshot.Failed:   {fail: kv.ErrUnavailable},
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log, s := &counted{Log: memory.New()}, kvmemory.New()
				w := begin(t, log, theRun, func(r *wire.RunRecord) { r.Inputs["large"] = fmt.Appendf(nil, "%q", c.input) })
				w.nodes(t, 30)
				got, done := results()
				k := keeper(t, log, &gate{Store: s, fail: c.fail}, done)
				st, _ := whole(t, log.Log)
				working(t, k, func() {
					for range 3 {
						k.Offer(st)
						synctest.Wait()
					}
				})
				require.Equal(t, []snapshot.Result{want}, *got)
				require.Equal(t, 1, log.wholeReads())
				require.False(t, has(t, s))
				w.nodes(t, 31) // twice as long, it is tried again
				st, _ = whole(t, log.Log)
				working(t, k, func() { k.Offer(st); synctest.Wait() })
				require.Equal(t, []snapshot.Result{want, want}, *got)
			})
		})
	}
}

// While the store is away, the log is not read for it.
func TestOffer_ReadsNoLogForAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, s, _ := long(t)
		got, done := results()
		k := keeper(t, log, away{s}, done)
		st, _ := whole(t, log.Log)
		working(t, k, func() { k.Offer(st); synctest.Wait() })
		require.Equal(t, []snapshot.Result{snapshot.Failed}, *got)
		require.Zero(t, log.wholeReads())
	})
}

// broken is a store that panics.
type broken struct{ kv.Store }

func (broken) Get(context.Context, string) (kv.Entry, error) { panic("broken") }

func TestRun_OutlivesAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, s, _ := long(t)
		got, done := results()
		k := keeper(t, log, broken{s}, done)
		st, _ := whole(t, log.Log)
		working(t, k, func() {
			for range 2 {
				k.Offer(st)
				synctest.Wait()
			}
		})
		require.Equal(t, []snapshot.Result{snapshot.Failed, snapshot.Failed}, *got)
	})
}

// A long run that has no snapshot, or an old one, gets one when it is read.
func TestRead_OffersWhatIsLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, s := memory.New(), kvmemory.New()
		w := begin(t, log, theRun, unchanged)
		k := keeper(t, log, s, nil)
		read := func() int {
			f, err := k.Read(t.Context(), byID, snapshot.Latest)
			require.NoError(t, err)
			synctest.Wait()
			return f.From
		}
		working(t, k, func() {
			w.nodes(t, 39)
			require.Zero(t, read())
			require.False(t, has(t, s))
			w.nodes(t, 1)
			require.Zero(t, read())
			require.True(t, has(t, s))
			w.nodes(t, 40)
			require.Equal(t, 401, read())
			require.Equal(t, 801, read())
		})
	})
}

func TestDelete_RemovesTheSnapshotAlone(t *testing.T) {
	t.Parallel()
	log, s, _ := long(t)
	k := keeper(t, log, s, nil)
	for range 2 {
		require.NoError(t, k.Delete(t.Context(), byID))
		require.False(t, has(t, s))
	}
	require.NoError(t, snapshot.Disabled(log).Delete(t.Context(), byID))
	require.ErrorIs(t, keeper(t, log, away{s}, nil).Delete(t.Context(), byID), kv.ErrUnavailable)
}

// A snapshot stores every field of the head.
func TestHead_IsStoredWhole(t *testing.T) {
	t.Parallel()
	var want, got frame.Head
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		for i := range v.NumField() {
			switch f := v.Field(i); {
			case f.Type() == reflect.TypeFor[time.Time]():
				f.Set(reflect.ValueOf(time.Unix(7, 0).UTC()))
			case f.Kind() == reflect.Struct:
				fill(f)
			case f.Kind() == reflect.String:
				f.SetString("x")
			case f.Kind() == reflect.Uint64:
				f.SetUint(7)
			default:
				f.SetInt(7)
			}
			require.Contains(t, snapshot.Build(), v.Type().Field(i).Name, "the fields are part of the build")
		}
	}
	fill(reflect.ValueOf(&want).Elem())
	b, err := json.Marshal(want)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &got))
	require.Equal(t, want, got)
}
