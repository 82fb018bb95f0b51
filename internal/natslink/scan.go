package natslink

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// scanAhead is how many messages wait for who scans.
const scanAhead = 512

const (
	// leastPull has room for a message of the largest size that the host needs, 8 MB, and some.
	leastPull = 12 << 20
	// besides is what the server counts of a message that is not part of its payload: its subject, and
	// where it is acknowledged.
	besides = 64 << 10
)

// MaxPull is how many bytes one pull asks a server for at most. The server ends a connection for
// which more waits than its max_pending, 32 MB, and two pulls may be under way. A message that is
// larger than a pull is never handed out, nor is what follows it: where max_payload is more than
// the host needs, a pull is as large.
func MaxPull(nc *nats.Conn) int { return max(leastPull, int(nc.MaxPayload())+besides) }

// forget is how long a server remembers a reader that has gone without a word.
const forget = 30 * time.Second

// Reader makes a consumer that hands out what a stream has in order, and of which the server keeps no
// position. Call end when nobody reads from it any more: the client leaves it to the server to
// forget consumers, which takes minutes, and a server refuses new ones when it has too many.
func Reader(ctx context.Context, nc *nats.Conn, stream js.Stream, cfg js.OrderedConsumerConfig) (c js.Consumer, end func(), err error) {
	cfg.InactiveThreshold = forget
	c, err = stream.OrderedConsumer(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	name := stream.CachedInfo().Config.Name
	return c, func() {
		// Nobody waits for the answer: what does not arrive is forgotten.
		_ = nc.Publish("$JS.API.CONSUMER.DELETE."+name+"."+c.CachedInfo().Name, nil)
	}, nil
}

// ErrClosed says that the server, or the client, gave up a scan.
var ErrClosed = errors.New("the consumer was closed")

// Scan hands over the messages of a subject in order, from a position to another at which
// there is one, and ends sooner when each returns false or an error. One consumer reads them:
// to ask for each message takes a round trip, and far longer for more than a few dozen.
func Scan(ctx context.Context, nc *nats.Conn, stream js.Stream, subject string, from, to uint64, each func(*js.RawStreamMsg) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, end, err := Reader(ctx, nc, stream, js.OrderedConsumerConfig{
		FilterSubjects: []string{subject}, DeliverPolicy: js.DeliverByStartSequencePolicy, OptStartSeq: from,
	})
	if err != nil {
		return err
	}
	in := make(chan js.Msg, scanAhead)
	run, err := c.Consume(func(m js.Msg) {
		select {
		case in <- m:
		case <-ctx.Done():
		}
	}, js.PullMaxMessagesWithBytesLimit(scanAhead, MaxPull(nc)))
	if err != nil {
		end()
		return err
	}
	defer func() {
		leave := func() { run.Stop(); end() }
		if ctx.Err() != nil { // the client may be asking a server that is away, and does not stop before it has an answer
			go leave()
			return
		}
		leave()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-run.Closed():
			return ErrClosed
		case m := <-in:
			meta, err := m.Metadata()
			if err != nil {
				return err
			}
			pos := meta.Sequence.Stream
			more, err := each(&js.RawStreamMsg{Subject: m.Subject(), Sequence: pos, Header: m.Headers(), Data: m.Data(), Time: meta.Timestamp})
			if err != nil || !more || pos >= to {
				return err
			}
		}
	}
}
