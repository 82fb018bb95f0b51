package jetstream_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// The number of unacknowledged deliveries of all dispatchers together is limited. The dispatcher
// that opened the queue last sets the limit.
func TestQueue_DeliversNoMoreThanTheLimitWithoutAcknowledgements(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.MaxPending, cfg.AckWait = 2, time.Minute
	srv, log := serve(t, t.TempDir(), cfg)
	mine, err := log.Queue(t.Context())
	require.NoError(t, err)
	defer mine.Close()
	for i := range 4 {
		run := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: fmt.Sprint("run-", i)}
		_, err := log.Append(t.Context(), frame.NewStart(run, []byte(`{}`)), 0)
		require.NoError(t, err)
	}
	next := func(q *jetstream.Queue, patience time.Duration) (string, func() error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		d, err := q.Next(ctx)
		if err != nil {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return "", nil
		}
		return d.Frame().Run.RunID, d.Ack
	}
	first, acknowledge := next(mine, 20*time.Second)
	require.Equal(t, "run-0", first)
	second, _ := next(mine, 20*time.Second)
	require.Equal(t, "run-1", second)
	none, _ := next(mine, 300*time.Millisecond)
	require.Empty(t, none, "two are all that may be out")
	require.NoError(t, acknowledge())
	third, _ := next(mine, 20*time.Second)
	require.Equal(t, "run-2", third)

	cfg.MaxPending = 3
	nc, err := srv.Connect("another dispatcher")
	require.NoError(t, err)
	defer nc.Close()
	wider, err := jetstream.Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	q, err := wider.Queue(t.Context())
	require.NoError(t, err)
	defer q.Close()
	fourth, _ := next(mine, 20*time.Second)
	require.Equal(t, "run-3", fourth)
}

// Another server may have a whole copy of a run whose frame cannot be read here: its log decides.
func TestQueue_DeliversTheRunOfADamagedFrame(t *testing.T) {
	t.Parallel()
	srv, log := serve(t, t.TempDir(), testConfig())
	q, err := log.Queue(t.Context())
	require.NoError(t, err)
	defer q.Close()
	nc, err := srv.Connect("a bad disk")
	require.NoError(t, err)
	defer nc.Close()
	run := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run-1"}
	good := frame.NewStart(run, []byte(`{}`))
	for name, msg := range map[string]*nats.Msg{
		"no headers": {Subject: run.Frame(subject.Start), Data: []byte(`{}`)},
		"a bit has flipped": {Subject: run.Frame(subject.Start), Data: []byte(`{!`), Header: nats.Header{
			frame.HeaderFirst: {"0"}, frame.HeaderLast: {"-1"}, frame.HeaderHash: {good.Hash},
		}},
	} {
		require.NoError(t, nc.PublishMsg(msg), name)
		d, err := q.Next(t.Context())
		require.NoError(t, err, name)
		require.Equal(t, run, d.Frame().Run, name)
		require.Equal(t, subject.Start, d.Frame().Kind, name)
		require.NotZero(t, d.Frame().Pos, name)
		require.True(t, d.Redelivered(), "%s: its content is not used", name)
		require.NoError(t, d.Ack(), name)
	}
}

// A request that was fulfilled is followed by the next one without a pause, and never for more runs
// than are wanted.
func TestQueue_FetchesOneRunAfterTheOther(t *testing.T) {
	t.Parallel()
	const runs = 60
	_, log := serve(t, t.TempDir(), testConfig())
	q, err := log.Queue(t.Context())
	require.NoError(t, err)
	defer q.Close()
	for i := range runs {
		run := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: fmt.Sprint("run-", i)}
		_, err := log.Append(t.Context(), frame.NewStart(run, []byte(`{}`)), 0)
		require.NoError(t, err)
	}
	var took []time.Duration
	for i := range runs {
		began := time.Now()
		d, err := q.Next(t.Context())
		require.NoError(t, err)
		depth, err := q.Depth(t.Context())
		require.NoError(t, err)
		require.Equal(t, runs-i-1, depth.Waiting, "one is fetched, and no more")
		require.Zero(t, depth.Fetched)
		require.NoError(t, d.Ack())
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	require.Less(t, took[runs/4], 25*time.Millisecond, "a pause would delay each of them, a busy machine only some")
}

// Fetched runs that were not returned go back when the queue is closed, not after AckWait.
func TestQueue_ReturnsUnclaimedRuns(t *testing.T) {
	t.Parallel()
	_, log := serve(t, t.TempDir(), testConfig())
	q, err := log.Queue(t.Context())
	require.NoError(t, err)
	q.Want(3)
	for i := range 3 {
		run := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: fmt.Sprint("run-", i)}
		_, err := log.Append(t.Context(), frame.NewStart(run, []byte(`{}`)), 0)
		require.NoError(t, err)
	}
	_, err = q.Next(t.Context())
	require.NoError(t, err)
	q.Close()
	_, err = q.Next(t.Context())
	require.ErrorIs(t, err, context.Canceled)
	other, err := log.Queue(t.Context())
	require.NoError(t, err)
	defer other.Close()
	other.Want(2)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for range 2 {
		d, err := other.Next(ctx)
		require.NoError(t, err)
		require.NoError(t, d.Ack())
	}
}

// Runs that arrive while a queue is closed go to another dispatcher at once, although the server
// still has a request of the closed queue.
func TestQueue_ReturnsRunsThatArriveDuringClose(t *testing.T) {
	t.Parallel()
	_, log := serve(t, t.TempDir(), testConfig())
	const runs, tries = 8, 5
	var took time.Duration
	for try := range tries { // a busy machine may delay some
		q, err := log.Queue(t.Context())
		require.NoError(t, err)
		other, err := log.Queue(t.Context())
		require.NoError(t, err)
		q.Want(2 * runs)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond) // a request is sent
		_, err = q.Next(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			q.Close()
		}()
		for i := range runs {
			run := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: fmt.Sprintf("run-%d-%d", try, i)}
			_, err := log.Append(t.Context(), frame.NewStart(run, []byte(`{}`)), 0)
			require.NoError(t, err)
		}
		appended := time.Now()
		other.Want(runs)
		for range runs {
			d, err := other.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, d.Ack())
		}
		took = time.Since(appended)
		<-closed
		other.Close()
		if took < 100*time.Millisecond {
			return
		}
	}
	require.Fail(t, "the runs waited until the queue was closed", "%s", took)
}

// A fetched run is extended from then on, also before Next returns it.
func TestQueue_ExtendsFetchedRuns(t *testing.T) {
	t.Parallel()
	cfg := testConfig()
	cfg.AckWait = time.Second
	_, log := serve(t, t.TempDir(), cfg)
	q, err := log.Queue(t.Context())
	require.NoError(t, err)
	defer q.Close()
	other, err := log.Queue(t.Context())
	require.NoError(t, err)
	defer other.Close()
	for i := range 4 {
		run := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: fmt.Sprint("run-", i)}
		_, err := log.Append(t.Context(), frame.NewStart(run, []byte(`{}`)), 0)
		require.NoError(t, err)
	}
	q.Want(4)
	first, err := q.Next(t.Context())
	require.NoError(t, err)
	require.NoError(t, first.Ack())
	require.Eventually(t, func() bool {
		d, err := q.Depth(t.Context())
		return err == nil && d.Fetched == 3
	}, 30*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 4*cfg.AckWait)
	defer cancel()
	_, err = other.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "none has lapsed")
	for range 3 {
		d, err := q.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, d.Tries())
		require.NoError(t, d.Ack())
	}
}
