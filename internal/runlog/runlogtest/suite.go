// Package runlogtest is the contract of the run log as tests. Every implementation of the ports in
// runlog runs the same suite, so that they are interchangeable.
package runlogtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Full combines all interfaces of a run log.
type Full interface {
	runlog.Log
	runlog.Pager
	runlog.TenantPager
	runlog.Queue
	runlog.Follower
	runlog.Eraser
	runlog.Sealer
}

// patience limits every wait of the suite; a correct log needs milliseconds, or its retry delay.
const patience = 20 * time.Second

// Run checks the log that open returns. Each test opens its own empty log; open registers the
// cleanup.
func Run(t *testing.T, open func(t *testing.T) Full) {
	tests := []struct {
		name  string
		check func(t *testing.T, l Full)
	}{
		{"append/places frames in order", appendPlacesInOrder},
		{"append/refuses a stale position", appendRefusesStale},
		{"append/refuses a second start of the same run", appendRefusesSecondStart},
		{"append/takes the same frame twice as once", appendTakesRetryAsOnce},
		{"append/takes a retry also after later frames", appendTakesLateRetry},
		{"append/lets one of eight racers win", appendLetsOneRacerWin},
		{"append/does not mix runs", appendDoesNotMixRuns},
		{"append/serves many at once, and those who race", appendServesMany},
		{"append/reports an ended context as unavailable", appendReportsEndedContext},
		{"read/gives back what was appended", readGivesBack},
		{"read/gives a long run whole", readsALongRunWhole},
		{"read/gives a run of large frames whole", readsARunOfLargeFramesWhole},
		{"read/returns an opened run, which is not queued", readGivesOpenedRuns},
		{"read/knows no other run", readKnowsNoOtherRun},
		{"read/finds a run under any workflow", readFindsAnyWorkflow},
		{"read/gives the last frame", readGivesLast},
		{"page/gives a run in pieces", pageGivesPieces},
		{"page/is bounded in bytes", pageIsBoundedInBytes},
		{"page/knows no other run", pageKnowsNoOtherRun},
		{"page/gives a tenant in pieces", pageGivesATenantInPieces},
		{"queue/hands out starts and wakes only", queueHandsOutStartsAndWakes},
		{"queue/hands a run to one holder", queueHandsToOne},
		{"queue/hands out again after retry", queueRetries},
		{"queue/ends a delivery once", queueEndsOnce},
		{"queue/counts what is not acknowledged", queueCounts},
		{"queue/stops waiting with its context", queueStopsWaiting},
		{"follow/is gapless from any position", followIsGapless},
		{"follow/sees later appends", followSeesLaterAppends},
		{"follow/ends with the handler's error", followEndsWithHandlerError},
		{"follow/ends with its context", followEndsWithContext},
		{"follow/knows the end", followKnowsEnd},
		{"erase/marks ended runs only", eraseMarksEndedRuns},
		{"erase/hides a marked run, and keeps its id", eraseHidesRun},
		{"erase/removes the frames of one run", eraseRemovesFrames},
		{"erase/shows the mark to followers", eraseShowsMark},
		{"erase/delivers a mark until it is handled", eraseDeliversMark},
		{"seal/finds ended runs", sealFindsEndedRuns},
		{"seal/marks ended runs only", sealMarksEndedRuns},
		{"seal/hides a marked run, and keeps its id", sealHidesRun},
		{"seal/shows the mark to followers", sealShowsMark},
		{"seal/leaves erasure possible", sealedRunsAreErased},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.check(t, open(t))
		})
	}
}

// chain writes the frames of one run in order.
type chain struct {
	t    *testing.T
	log  runlog.Appender
	run  subject.Run
	head frame.Head
}

func newChain(t *testing.T, l runlog.Appender, runID string) *chain {
	t.Helper()
	run := subject.Run{Tenant: "acme", WorkflowID: "flow-1", RunID: runID}
	return &chain{t: t, log: l, run: run}
}

// start appends the run's start frame.
func (c *chain) start() *frame.Frame {
	return c.append(frame.NewStart(c.run, record(c.run)))
}

// add appends a frame of kind with n events.
func (c *chain) add(kind subject.Kind, n int) *frame.Frame {
	return c.append(c.next(kind, n))
}

// next returns the next frame without appending it.
func (c *chain) next(kind subject.Kind, n int) *frame.Frame {
	events := make([]wire.Event, n)
	for i := range events {
		d := wire.Draft{Type: wire.EventLogAppended, Payload: []byte(`{"level":"info","message":"m"}`)}
		events[i] = d.Place(c.run.RunID, c.head.Next+i, time.UnixMilli(1700000000000))
	}
	return frame.New(c.run, kind, c.head, events)
}

func (c *chain) append(f *frame.Frame) *frame.Frame {
	c.t.Helper()
	pos, err := c.log.Append(within(c.t), f, c.head.Pos)
	require.NoError(c.t, err)
	require.Greater(c.t, pos, c.head.Pos)
	stored := *f
	stored.Pos = pos
	c.head = stored.Head()
	return &stored
}

func record(run subject.Run) []byte {
	return fmt.Appendf(nil, `{"runId":%q,"workflowId":%q,"workflowDigest":"d","workflowVersion":"1","owner":{"tenant":%q},"createdAt":"2026-01-01T00:00:00.000Z","engineVersion":1}`,
		run.RunID, run.WorkflowID, run.Tenant)
}

// within returns a context that ends after patience.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// sameFrame compares content and position of frames.
func sameFrame(t *testing.T, want, got *frame.Frame) {
	t.Helper()
	require.NoError(t, got.Verify())
	require.False(t, got.Stored.IsZero(), "a stored frame has its time")
	w, g := *want, *got
	w.Stored, g.Stored = time.Time{}, time.Time{}
	require.Equal(t, w, g)
}

// errStop ends a Follow from inside.
var errStop = errors.New("enough")
