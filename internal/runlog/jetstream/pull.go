package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/internal/natslink"
)

// puller requests messages of a pull consumer, no more than its caller requests: the client's own
// iterators fetch ahead of their reader, and a run that waits in one dispatcher's memory while
// another has a free slot is late, and can lapse there.
//
// The requests share one inbox, so that no message is lost between two of them. Messages that wait
// for next are extended.
type puller struct {
	nc      *nats.Conn
	ackWait time.Duration
	subject string
	inbox   string
	sub     *nats.Subscription
	in      chan *nats.Msg
	changed chan struct{} // capacity 1: a request has ended
	ended   chan struct{} // closed by close
	once    sync.Once

	// want is how many messages may be on their way or wait in the channel; only next uses it.
	want int

	mu sync.Mutex // guards the fields below
	// due are the messages that the server may still send for the open requests, and until when.
	due, open int
	until     time.Time
	// refused is when the server last refused a request, and failed why it could not take one.
	refused time.Time
	failed  error
}

const (
	// pullFor is how long the server keeps a request. It bounds how long close waits.
	pullFor = time.Second
	// pullGrace is how much later a request counts as lost.
	pullGrace = 500 * time.Millisecond
	// pullRetry is the pause after the server refused a request.
	pullRetry = 50 * time.Millisecond
	// maxPull bounds the messages of one request.
	maxPull = 512
	// maxOpen bounds the open requests: the server ends a connection for which more bytes wait
	// than two of them may take (natslink.MaxPull).
	maxOpen = 2
)

var errPullerClosed = errors.New("queue closed")

func newPuller(nc *nats.Conn, stream, consumer string, ackWait time.Duration) (*puller, error) {
	p := &puller{
		nc: nc, ackWait: ackWait, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer, inbox: nc.NewInbox(),
		in: make(chan *nats.Msg, 4*maxPull), changed: make(chan struct{}, 1), ended: make(chan struct{}), want: 1,
	}
	var err error
	if p.sub, err = nc.Subscribe(p.inbox, p.received); err != nil {
		return nil, fmt.Errorf("subscribe to a queue: %w", err)
	}
	p.keep()
	return p, nil
}

// keep extends the messages that wait for next, and repeats until the puller is closed. A message
// that next returns was extended, or arrived, a sixth of AckWait ago at most: its holder extends it
// after three quarters.
func (p *puller) keep() {
	select {
	case <-p.ended:
		return
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for range len(p.in) {
		select {
		case m := <-p.in:
			_ = m.InProgress() // if that is lost, the message may be handed out again
			p.in <- m          // there is room: only received adds any, and it waits for mu
		default: // next took the others
		}
	}
	time.AfterFunc(p.ackWait/6, p.keep)
}

// next waits for a message. Errors: errPullerClosed, that of ctx or of the connection.
func (p *puller) next(ctx context.Context) (*nats.Msg, error) {
	for ctx.Err() == nil {
		wait, err := p.request()
		if err != nil {
			return nil, err
		}
		t := time.NewTimer(wait)
		select {
		case m := <-p.in:
			t.Stop()
			return m, nil
		case <-p.changed:
		case <-t.C:
		case <-ctx.Done():
		case <-p.ended:
			t.Stop()
			return nil, errPullerClosed
		}
		t.Stop()
	}
	return nil, ctx.Err()
}

// request requests the missing messages that are not in flight, in large steps unless nothing is in flight.
// wait is the time until the next check.
func (p *puller) request() (wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.failed; err != nil {
		p.failed = nil
		return 0, err
	}
	now := time.Now()
	if p.due == 0 || now.After(p.until) { // overdue: lost with a connection or a leader
		p.due, p.open = 0, 0
	}
	if pause := pullRetry - now.Sub(p.refused); pause > 0 {
		return pause, nil
	}
	missing := p.want - p.due - len(p.in)
	if missing <= 0 || p.due > 0 && (missing < p.want/4 || p.open >= maxOpen) {
		return max(p.until.Sub(now), pullRetry), nil
	}
	n := min(missing, maxPull)
	body, err := json.Marshal(struct {
		Batch   int           `json:"batch"`
		Expires time.Duration `json:"expires"`
		// MaxBytes keeps a backlog of large frames below what the server buffers for a connection.
		MaxBytes int `json:"max_bytes"`
	}{n, pullFor, natslink.MaxPull(p.nc)})
	if err != nil {
		return 0, fmt.Errorf("render a pull request: %w", err)
	}
	if err := p.nc.PublishRequest(p.subject, p.inbox, body); err != nil {
		return 0, fmt.Errorf("pull: %w", err)
	}
	p.due, p.open = p.due+n, p.open+1
	p.until = now.Add(pullFor + pullGrace)
	return pullFor + pullGrace, nil
}

// received takes a message, or a status of the server about a request.
func (p *puller) received(m *nats.Msg) {
	status := m.Header.Get("Status")
	p.mu.Lock()
	defer p.mu.Unlock()
	switch status {
	case "":
		p.due = max(0, p.due-1)
		select {
		case p.in <- m:
		default: // more than was ever wanted
			_ = m.Nak() // a lost one is handed out again after AckWait
		}
		return
	case "100": // a heartbeat
		return
	case "404", "408", "409": // a request has ended, with so many messages missing
		left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
		if err != nil {
			left = p.due
		}
		p.due, p.open = max(0, p.due-left), max(0, p.open-1)
		if status == "409" && (err != nil || left > 0 && !strings.Contains(m.Header.Get("Description"), "MaxBytes")) {
			p.refused = time.Now() // such as: too many requests wait
		}
	default: // 503: the consumer has no leader
		p.due = 0
		p.failed = fmt.Errorf("pull: %s %s", status, m.Header.Get("Description"))
	}
	select {
	case p.changed <- struct{}{}:
	default: // next looks anyway
	}
}

// fetched is how many messages wait for next.
func (p *puller) fetched() int { return len(p.in) }

// close ends the requests. It passes messages that next has not returned to giveBack as they
// arrive: the server may send some until its last request has expired.
func (p *puller) close(giveBack func(*nats.Msg)) {
	p.once.Do(func() {
		close(p.ended)
		end := time.NewTimer(pullFor + pullGrace)
		defer end.Stop()
		for p.expects() {
			select {
			case m := <-p.in:
				giveBack(m)
			case <-p.changed:
			case <-end.C:
				p.mu.Lock()
				p.due = 0
				p.mu.Unlock()
			}
		}
		_ = p.sub.Unsubscribe() // it ends with the connection anyway
	})
}

func (p *puller) expects() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return (p.due > 0 || len(p.in) > 0) && !p.nc.IsClosed()
}
