package natslink

import (
	"context"
	"errors"

	js "github.com/nats-io/nats.go/jetstream"
)

// scanAhead is how many messages wait for who scans.
const scanAhead = 512

// MaxPull is how many bytes one pull asks for at most: a message of the largest size, 8 MB, and
// some. A server ends a connection for which more waits than its max_pending, 32 MB, and two pulls
// may be under way.
const MaxPull = 12 << 20

// ErrClosed says that the server, or the client, gave up a scan.
var ErrClosed = errors.New("the consumer was closed")

// Scan hands over the messages of a subject in order, from a position to another at which
// there is one, and ends sooner when each returns false or an error. One consumer reads them:
// to ask for each message takes a round trip, and far longer for more than a few dozen.
func Scan(ctx context.Context, stream js.Stream, subject string, from, to uint64, each func(*js.RawStreamMsg) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := stream.OrderedConsumer(ctx, js.OrderedConsumerConfig{
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
	}, js.PullMaxMessagesWithBytesLimit(scanAhead, MaxPull))
	if err != nil {
		return err
	}
	defer run.Stop()
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
