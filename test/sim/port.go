package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/runlog"
)

// boundary names a kind of call that leaves a process.
type boundary string

// The boundaries.
const (
	atAppend  boundary = "append"
	atRead    boundary = "read"
	atNext    boundary = "next"
	atAck     boundary = "ack"
	atRetry   boundary = "retry"
	atExtend  boundary = "extend"
	atRecords boundary = "records"
	atRedact  boundary = "redact"
	atScrub   boundary = "scrub"
	atAccept  boundary = "accept"
	atOutcome boundary = "outcome"
	atTimers  boundary = "timers"
	atModel   boundary = "model"
	atPiece   boundary = "piece"
	atRequest boundary = "request"
	atAnswer  boundary = "answer"
	atSign    boundary = "sign"
	atPeer    boundary = "peer"
	atDrained boundary = "drained"
	atTickets boundary = "tickets"
	atDepth   boundary = "depth"
)

// traits are the possible faults at a boundary, in addition to latency and killed processes.
type traits struct {
	fails   bool // error before it took effect
	loses   bool // error after it took effect: the acknowledgement is lost
	lingers bool // it may arrive after its caller is gone
}

// boundaries is the table of boundaries. Models fail only as scripted, so that each node's result
// is known.
var boundaries = map[boundary]traits{
	atAppend:  {fails: true, loses: true, lingers: true},
	atRead:    {fails: true},
	atNext:    {fails: true, loses: true},
	atAck:     {fails: true, loses: true},
	atRetry:   {fails: true, loses: true},
	atExtend:  {fails: true, loses: true},
	atRecords: {fails: true},
	atRedact:  {fails: true},
	atScrub:   {fails: true},
	atAccept:  {fails: true},
	atOutcome: {fails: true},
	atTimers:  {fails: true},
	atModel:   {},
	atPiece:   {},
	atRequest: {fails: true},
	atAnswer:  {fails: true},
	atSign:    {},
	atPeer:    {fails: true, loses: true},
	atDrained: {},
	atTickets: {fails: true, loses: true, lingers: true},
	atDepth:   {fails: true},
}

// errFault is the error of a fault, errDead the error in a killed process.
var (
	errFault = fmt.Errorf("%w: simulated fault", runlog.ErrUnavailable)
	errDead  = errors.New("process was killed")
)

// call is one call at a boundary, until it is served.
type call struct {
	from *process
	at   boundary
	// detail distinguishes calls of one process at one boundary. Calls with equal details at one
	// instant are twins.
	detail string
	// perform carries the call out on the scheduler's goroutine; nil does nothing.
	perform func() error
	// ready is the earliest time of the call; nil means immediately.
	ready func() time.Time
	reply chan error

	admitted bool
	latency  time.Duration
	due      time.Time // when its latency has passed
	gone     bool      // the caller has stopped waiting
}

// key orders calls that have no other order.
func (c *call) key() string { return c.from.name + " " + string(c.at) + " " + c.detail }

// call blocks until the scheduler has served it, ctx ends, or the process is killed. After an
// error, values set by perform must not be read.
func (p *process) call(ctx context.Context, at boundary, detail string, perform func() error) error {
	return p.wait(ctx, &call{at: at, detail: detail, perform: perform})
}

func (p *process) wait(ctx context.Context, c *call) error {
	c.from, c.reply = p, make(chan error, 1)
	if !p.w.register(c) {
		return errDead
	}
	select {
	case err := <-c.reply:
		return err
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
	p.w.leave(c)
	return fmt.Errorf("%w: the caller has stopped waiting", runlog.ErrUnavailable)
}

// register passes a call to the scheduler. It returns false if the process is dead.
func (w *World) register(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.from.dead {
		return false
	}
	w.pending = append(w.pending, c)
	select {
	case w.news <- struct{}{}:
	default:
	}
	return true
}

// leave informs the scheduler that the caller has stopped waiting.
func (w *World) leave(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.gone = true
}
