package subscribe_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/client/subscribe"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, natsdtest.LeftBehind()...) }

const tenant = "acme"

// rig is a log and a connection to its server.
type rig struct {
	t   *testing.T
	log *jetstream.Log
	nc  *nats.Conn
}

func newRig(t *testing.T) *rig {
	t.Helper()
	srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	r := &rig{t: t}
	r.nc, err = srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(r.nc.Close)
	r.log, err = jetstream.Open(t.Context(), r.nc, jetstream.DefaultConfig())
	require.NoError(t, err)
	return r
}

// write appends runs to the log, each with the given number of frames of two events.
func (r *rig) write(tenant string, frames int, ids ...string) {
	r.t.Helper()
	heads := map[string]frame.Head{}
	for _, id := range ids {
		heads[id] = r.append(frame.NewStart(subject.Run{Tenant: tenant, WorkflowID: "w", RunID: id}, []byte(`{}`)), 0)
	}
	for range frames {
		for _, id := range ids { // interleaved
			head := heads[id]
			var events []wire.Event
			for k := range 2 {
				d := wire.Draft{Type: wire.EventRunStarted, Payload: []byte(`{}`)}
				events = append(events, d.Place(id, head.Next+k, time.Now()))
			}
			heads[id] = r.append(frame.New(subject.Run{Tenant: tenant, WorkflowID: "w", RunID: id}, subject.Step, head, events), head.Pos)
		}
	}
}

func (r *rig) append(f *frame.Frame, after uint64) frame.Head {
	r.t.Helper()
	pos, err := r.log.Append(r.t.Context(), f, after)
	require.NoError(r.t, err)
	f.Pos = pos
	return f.Head()
}

// seen records the events of a handler, and stops it.
type seen struct {
	list []string
	last map[string]int
	// until is the number of events after which reading stops, fail the event at which the handler fails.
	until, fail int
	stop        context.CancelFunc
}

var errHandler = errors.New("the handler failed")

func (s *seen) handle(_ context.Context, e subscribe.Event) error {
	if s.fail > 0 && len(s.list)+1 == s.fail {
		s.fail = 0
		return errHandler
	}
	s.list = append(s.list, fmt.Sprintf("%s/%d", e.Run.RunID, e.Sequence))
	if s.last != nil {
		s.last[e.Run.RunID] = e.Sequence
	}
	if len(s.list) == s.until {
		s.stop()
	}
	return nil
}

// Last implements subscribe.Seen.
func (s *seen) Last(_ context.Context, runID string) (int, error) {
	if n, ok := s.last[runID]; ok {
		return n, nil
	}
	return -1, nil
}

// consumer creates the consumer.
func (r *rig) consumer(c natsperm.Consumer) {
	r.t.Helper()
	api, err := js.New(r.nc)
	require.NoError(r.t, err)
	c.Tenant = tenant
	if c.Name == "" {
		c.Name = subject.DefaultConsumer
	}
	require.NoError(r.t, c.Make(r.t.Context(), api))
}

// read reads until s stops it.
func (r *rig) read(cfg subscribe.Config, s *seen) error {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	s.stop = cancel
	cfg.Tenant = tenant
	r.consumer(natsperm.Consumer{Name: cfg.Consumer})
	sub, err := subscribe.Open(ctx, r.nc, cfg)
	require.NoError(r.t, err)
	err = sub.Run(ctx, s.handle)
	require.NotErrorIs(r.t, ctx.Err(), context.DeadlineExceeded, "read %v", s.list)
	return err
}

func TestRun_PassesEachEventOfTheTenantOnceAndInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write("other", 2, "theirs")
	r.write(tenant, 2, "a", "b")
	s := &seen{until: 8}
	require.NoError(t, r.read(subscribe.Config{}, s))
	require.Equal(t, []string{"a/0", "a/1", "b/0", "b/1", "a/2", "a/3", "b/2", "b/3"}, s.list)
}

func TestRun_ResumesWhereItEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(tenant, 3, "a")
	first := &seen{until: 2}
	r.consumer(natsperm.Consumer{AckWait: 200 * time.Millisecond})
	require.NoError(t, r.read(subscribe.Config{}, first))
	// Reading ended before the acknowledgement, so the frame is redelivered. Seen prevents handling
	// its events again.
	second := &seen{until: 4, last: map[string]int{"a": 1}}
	require.NoError(t, r.read(subscribe.Config{Seen: second}, second))
	require.Equal(t, []string{"a/0", "a/1"}, first.list)
	require.Equal(t, []string{"a/2", "a/3", "a/4", "a/5"}, second.list)
}

// After a handler fails within a frame, its unhandled events are passed again, before later ones and
// without repeating handled ones.
func TestRun_RedeliversUnhandledEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(tenant, 2, "a", "b")
	s := &seen{until: 8, fail: 4, last: map[string]int{}}
	require.ErrorIs(t, r.read(subscribe.Config{}, s), errHandler)
	require.Equal(t, []string{"a/0", "a/1", "b/0"}, s.list)
	require.NoError(t, r.read(subscribe.Config{Seen: s}, s))
	require.Equal(t, []string{"a/0", "a/1", "b/0", "b/1", "a/2", "a/3", "b/2", "b/3"}, s.list)
}

// A message that is redelivered because its acknowledgement was late is not handled again.
func TestRun_SkipsRedeliveries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(tenant, 2, "a")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r.consumer(natsperm.Consumer{AckWait: 100 * time.Millisecond})
	sub, err := subscribe.Open(ctx, r.nc, subscribe.Config{Tenant: tenant})
	require.NoError(t, err)
	api, err := js.New(r.nc)
	require.NoError(t, err)
	var got []int
	require.NoError(t, sub.Run(ctx, func(ctx context.Context, e subscribe.Event) error {
		got = append(got, e.Sequence)
		if e.Sequence == 0 { // exceed AckWait, so the frame is redelivered
			redelivered(t, ctx, api)
		}
		if e.Sequence == 3 {
			cancel()
		}
		return nil
	}))
	require.Equal(t, []int{0, 1, 2, 3}, got)
}

// redelivered waits until the server redelivers a message. It does so on a pull, here by a second
// reader that does not acknowledge.
func redelivered(t *testing.T, ctx context.Context, api js.JetStream) { //nolint:revive // as in all helpers
	t.Helper()
	c, err := api.Consumer(ctx, subject.Stream, subject.Consumer(tenant, subject.DefaultConsumer))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		m, err := c.Next(js.FetchMaxWait(time.Second))
		if err != nil {
			return false
		}
		md, err := m.Metadata()
		return err == nil && md.NumDelivered > 1 && m.Nak() == nil
	}, 10*time.Second, time.Millisecond)
}

func TestRun_EndsWithADamagedFrame(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	api, err := js.New(r.nc)
	require.NoError(t, err)
	_, err = api.PublishMsg(t.Context(), &nats.Msg{
		Subject: subject.Run{Tenant: tenant, WorkflowID: "w", RunID: "a"}.Frame(subject.Step), Data: []byte(`[]`),
		Header: nats.Header{frame.HeaderFirst: {"0"}, frame.HeaderLast: {"-1"}, frame.HeaderHash: {"no"}},
	})
	require.NoError(t, err)
	s := &seen{}
	require.ErrorIs(t, r.read(subscribe.Config{}, s), frame.ErrDamaged)

	// A damaged frame does not prevent reading other runs.
	r.write(tenant, 1, "b")
	var where []string
	s = &seen{until: 2}
	require.NoError(t, r.read(subscribe.Config{Damaged: func(_ context.Context, at string, err error) error {
		require.ErrorIs(t, err, frame.ErrDamaged)
		where = append(where, at)
		return nil
	}}, s))
	require.Equal(t, []string{subject.Run{Tenant: tenant, WorkflowID: "w", RunID: "a"}.Frame(subject.Step)}, where)
	require.Equal(t, []string{"b/0", "b/1"}, s.list)
}

func TestRun_SkipsEventsBeforeANewConsumer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(tenant, 2, "old")
	r.consumer(natsperm.Consumer{Name: "new", New: true})
	r.write(tenant, 1, "new")
	s := &seen{until: 2}
	require.NoError(t, r.read(subscribe.Config{Consumer: "new"}, s))
	require.Equal(t, []string{"new/0", "new/1"}, s.list)
}

func TestOpen_ReportsInvalidConfigs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.consumer(natsperm.Consumer{Name: "wide", MaxPending: 2})
	for want, cfg := range map[string]subscribe.Config{
		"--max-pending 1":              {Tenant: tenant, Consumer: "wide"},
		"waybill nats consumer create": {Tenant: tenant, Consumer: "none"},
		`tenant "a.b"`:                 {Tenant: "a.b"},
		`consumer "acme=x"`:            {Tenant: tenant, Consumer: "acme=x"},
	} {
		_, err := subscribe.Open(t.Context(), r.nc, cfg)
		require.ErrorContains(t, err, want)
	}
}

// end ends runs and moves them out of the log.
func (r *rig) seal(tenant string, ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		run := subject.Run{Tenant: tenant, WorkflowID: "w", RunID: id}
		frames, err := r.log.Run(r.t.Context(), run)
		require.NoError(r.t, err)
		last := frames[len(frames)-1]
		e := wire.Draft{Type: wire.EventRunCompleted, Payload: []byte(`{}`)}.Place(id, last.Last+1, time.Now())
		head := r.append(frame.New(run, subject.End, last.Head(), []wire.Event{e}), last.Pos)
		positions := []uint64{head.Pos}
		for _, f := range frames {
			positions = append(positions, f.Pos)
		}
		slices.Sort(positions)
		require.NoError(r.t, r.log.Seal(r.t.Context(), run, head, positions))
		require.NoError(r.t, r.log.Drop(r.t.Context(), run, positions, runlog.Overwrite))
	}
}

// A subscription that lags behind the hot window learns which events it has missed, and where they are.
func TestRun_ReportsMissedEventsOfSealedRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(tenant, 2, "a", "b")
	s := &seen{until: 1}
	require.NoError(t, r.read(subscribe.Config{}, s))
	r.seal(tenant, "a", "b")
	r.write(tenant, 1, "c")

	var missed *subscribe.MissedError
	require.ErrorAs(t, r.read(subscribe.Config{Seen: &seen{last: map[string]int{"a": 0}}}, &seen{}), &missed)
	require.Equal(t, subscribe.MissedError{Run: subject.Run{Tenant: tenant, WorkflowID: "w", RunID: "a"}, After: 0, Last: 4}, *missed)
	require.ErrorContains(t, missed, "GET /v1/runs/a/events/poll?lastSequence=0")

	var all []string
	note := func(_ context.Context, m *subscribe.MissedError) error {
		all = append(all, fmt.Sprintf("%s after %d to %d", m.Run.RunID, m.After, m.Last))
		return nil
	}
	rest := &seen{until: 2, last: map[string]int{"a": 4}}
	require.NoError(t, r.read(subscribe.Config{Seen: rest, Missed: note}, rest))
	require.Equal(t, []string{"b after -1 to 4"}, all, "all events of run a are handled")
	require.Equal(t, []string{"c/0", "c/1"}, rest.list)
}

// Without Seen, a subscription reports only what it was to read itself.
func TestRun_ReportsNothingOfRunsBeforeIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(tenant, 1, "before")
	require.NoError(t, r.read(subscribe.Config{}, &seen{until: 2}))
	r.write(tenant, 1, "later")
	r.seal(tenant, "before", "later")
	r.write(tenant, 1, "c")
	var all []string
	s := &seen{until: 2}
	require.NoError(t, r.read(subscribe.Config{Missed: func(_ context.Context, m *subscribe.MissedError) error {
		all = append(all, m.Run.RunID)
		return nil
	}}, s))
	require.Equal(t, []string{"later"}, all)
	require.Equal(t, []string{"c/0", "c/1"}, s.list[len(s.list)-2:])
}

func TestRun_EndsWhenItsConsumerIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.consumer(natsperm.Consumer{Tenant: tenant})
	s, err := subscribe.Open(t.Context(), r.nc, subscribe.Config{Tenant: tenant})
	require.NoError(t, err)
	api, err := js.New(r.nc)
	require.NoError(t, err)
	require.NoError(t, api.DeleteConsumer(t.Context(), subject.Stream, subject.Consumer(tenant, subject.DefaultConsumer)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = s.Run(ctx, func(context.Context, subscribe.Event) error { return nil })
	require.ErrorIs(t, err, js.ErrConsumerNotFound)
	require.NoError(t, ctx.Err())
}
