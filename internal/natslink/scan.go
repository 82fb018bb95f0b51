package natslink

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// scanAhead is the number of messages buffered for a scan.
const scanAhead = 512

const (
	// leastPull has room for a message of the host's maximum size, 8 MB, plus overhead.
	leastPull = 12 << 20
	// overhead is what the server counts per message: its subject and its reply
	// subject.
	overhead = 64 << 10
)

// MaxPull limits the bytes of one pull. The server ends a connection with more pending data than
// its max_pending, 32 MB, and two pulls may be in progress. A message larger than a pull would
// never be delivered, nor those after it: if max_payload exceeds the host's needs, the pull has
// that size.
func MaxPull(nc *nats.Conn) int { return max(leastPull, int(nc.MaxPayload())+overhead) }

// forget is how long a server keeps the consumer of a reader that vanished.
const forget = 30 * time.Second

// Reader creates a consumer that delivers a stream in order, without a stored position. Call end
// when no reader uses it any more. The client leaves the deletion of consumers to the server, which
// takes minutes, and a server with too many consumers rejects new ones.
func Reader(ctx context.Context, nc *nats.Conn, stream js.Stream, cfg js.OrderedConsumerConfig) (c js.Consumer, end func(), err error) {
	cfg.InactiveThreshold = forget
	c, err = stream.OrderedConsumer(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	name := stream.CachedInfo().Config.Name
	return c, func() {
		// The answer is not needed: an undeleted consumer expires.
		_ = nc.Publish("$JS.API.CONSUMER.DELETE."+name+"."+c.CachedInfo().Name, nil)
	}, nil
}

// ErrClosed means that the server or the client ended a scan.
var ErrClosed = errors.New("the consumer was closed")

// Scan calls each with the messages of a subject in order, between two positions, the last of which
// must exist. It ends early if each returns false or an error. It uses one consumer: requesting
// each message takes a round trip, which is far slower for more than a few dozen.
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
		if ctx.Err() != nil { // the client may be waiting for an unavailable server and ignores ctx while it waits
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
			more, err := each(&js.RawStreamMsg{
				Subject:  m.Subject(),
				Sequence: pos,
				Header:   m.Headers(),
				Data:     m.Data(),
				Time:     meta.Timestamp,
			})
			if err != nil || !more || pos >= to {
				return err
			}
		}
	}
}
