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

// puller requests messages of a pull consumer, no more than its caller wants: the client's own
// iterators fetch ahead of their reader, and a run that waits in one dispatcher's memory while
// another has a free slot is late, and can lapse there.
//
// The requests share one inbox, so that no message is lost between two of them.
type puller struct {
	nc      *nats.Conn
	subject string
	inbox   string
	sub     *nats.Subscription
	in      chan *nats.Msg

	// want is how many messages may be on their way or waiting in the channel.
	want int
	// due are those that the server may still send for the open requests, and until when.
	due, open int
	until     time.Time
	once      sync.Once
	ended     chan struct{}
}

const (
	// pullFor is how long the server keeps a request. It bounds how long close waits.
	pullFor = 500 * time.Millisecond
	// pullGrace is how much later a request counts as lost.
	pullGrace = 500 * time.Millisecond
	// pullRetry is the pause after the server had no place for a request.
	pullRetry = 50 * time.Millisecond
	// maxPull bounds the messages of one request.
	maxPull = 512
	// maxOpen bounds the open requests: the server ends a connection for which more bytes wait
	// than two of them may take (natslink.MaxPull).
	maxOpen = 2
)

var errPullerClosed = errors.New("queue closed")

func newPuller(nc *nats.Conn, stream, consumer string) (*puller, error) {
	p := &puller{
		nc: nc, subject: "$JS.API.CONSUMER.MSG.NEXT." + stream + "." + consumer, inbox: nc.NewInbox(),
		in: make(chan *nats.Msg, 4*maxPull), want: 1, ended: make(chan struct{}),
	}
	var err error
	if p.sub, err = nc.ChanSubscribe(p.inbox, p.in); err != nil {
		return nil, fmt.Errorf("subscribe to a queue: %w", err)
	}
	return p, nil
}

// next waits for a message. Errors: errPullerClosed, that of ctx or of the connection.
func (p *puller) next(ctx context.Context) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		if err := p.request(); err != nil {
			return nil, err
		}
		wait := time.NewTimer(time.Until(p.until))
		select {
		case m := <-p.in:
			wait.Stop()
			pause, err := p.took(m)
			if err != nil {
				return nil, err
			}
			if m.Header.Get("Status") == "" {
				return m, nil
			}
			if !p.pause(ctx, pause) {
				return nil, context.Cause(ctx)
			}
		case <-wait.C: // the request was lost, as with a connection or a leader
			p.due = 0
		case <-ctx.Done():
			wait.Stop()
			return nil, ctx.Err()
		case <-p.ended:
			wait.Stop()
			return nil, errPullerClosed
		}
	}
}

func (p *puller) pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// request asks for what is wanted and not on its way, in large steps unless nothing is.
func (p *puller) request() error {
	if p.due == 0 {
		p.open = 0
	}
	missing := p.want - p.due - len(p.in)
	if missing <= 0 || p.due > 0 && missing < p.want/4 || p.open >= maxOpen {
		return nil
	}
	n := min(missing, maxPull)
	body, err := json.Marshal(struct {
		Batch   int           `json:"batch"`
		Expires time.Duration `json:"expires"`
		// MaxBytes keeps a backlog of large frames below what the server buffers for a connection.
		MaxBytes int `json:"max_bytes"`
	}{n, pullFor, natslink.MaxPull(p.nc)})
	if err != nil {
		return fmt.Errorf("render a pull request: %w", err)
	}
	if err := p.nc.PublishRequest(p.subject, p.inbox, body); err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	p.due, p.open = p.due+n, p.open+1
	p.until = time.Now().Add(pullFor + pullGrace)
	return nil
}

// took counts a message or a status of the server; pause is how long to wait after a refusal.
func (p *puller) took(m *nats.Msg) (pause time.Duration, err error) {
	status := m.Header.Get("Status")
	switch status {
	case "":
		p.due = max(0, p.due-1)
		return 0, nil
	case "100": // a heartbeat
		return 0, nil
	case "404", "408", "409": // a request has ended, with so many messages missing
		left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
		if err != nil {
			p.due = 0
		}
		p.due, p.open = max(0, p.due-left), max(0, p.open-1)
		refused := err != nil || left > 0 && !strings.Contains(m.Header.Get("Description"), "MaxBytes")
		if status == "409" && refused {
			return pullRetry, nil // such as: too many requests wait
		}
		return 0, nil
	default: // 503: nobody leads the consumer
		p.due = 0
		return 0, fmt.Errorf("pull: %s %s", status, m.Header.Get("Description"))
	}
}

// close ends the requests and returns the messages that nobody took.
func (p *puller) close() (left []*nats.Msg) {
	p.once.Do(func() {
		close(p.ended)
		end := time.NewTimer(pullFor + pullGrace)
		defer end.Stop()
		for p.due > 0 && !p.nc.IsClosed() {
			select {
			case m := <-p.in:
				if m.Header.Get("Status") == "" {
					left = append(left, m)
				}
				if _, err := p.took(m); err != nil {
					p.due = 0
				}
			case <-end.C:
				p.due = 0
			}
		}
		_ = p.sub.Unsubscribe() // it ends with the connection anyway
	})
	return left
}
