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

// traits say what can go wrong at a boundary, besides that it takes long and
// that a process dies there.
type traits struct {
	fails   bool // before it took effect
	loses   bool // after it took effect: the acknowledgement is lost
	lingers bool // it reaches the other side although its caller has gone
}

// boundaries is the table of them. Models fail by their scripts alone, so that
// it is known what a node must come to.
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

// errFault is what a caller sees of a fault, errDead what is left of a process
// that was killed.
var (
	errFault = fmt.Errorf("%w: simulated fault", runlog.ErrUnavailable)
	errDead  = errors.New("process was killed")
)

// call is one call at a boundary, until it is served.
type call struct {
	from *process
	at   boundary
	// detail tells calls of one process at one boundary apart. Two that agree in it
	// are interchangeable.
	detail string
	// perform does what is asked for, on the scheduler's goroutine; nil: nothing.
	perform func() error
	// ready is the instant from which on it can be performed; nil: at once.
	ready func() time.Time
	reply chan error

	admitted bool
	latency  time.Duration
	due      time.Time // when its latency has passed
	gone     bool      // the caller waits no more
}

// key orders calls that nothing else orders.
func (c *call) key() string { return c.from.name + " " + string(c.at) + " " + c.detail }

// call blocks until the scheduler has served it, or ctx ends, or the process
// was killed. After an error, nothing that perform has set may be read.
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
	return fmt.Errorf("%w: nobody waits for it any more", runlog.ErrUnavailable)
}

// register hands a call to the scheduler; false: its process is dead.
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

// leave tells the scheduler that a caller waits no more.
func (w *World) leave(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.gone = true
}
