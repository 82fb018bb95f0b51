package natslink

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"waybill.dev/waybill/internal/lifecycle"
)

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

// ForgetReader is how long a server remembers an ordered consumer for which nobody asks: the client does
// not delete one that it is through with, a process that is killed cannot, and a server has a limit for
// those of a stream, 1,000 unless it is told otherwise.
const ForgetReader = 30 * time.Second

const (
	// scanPage is how many messages a server is asked for at a time, and scanBytes how many bytes: the
	// message that reaches them is the last.
	scanPage  = 512
	scanBytes = 1 << 20
	// scanTry bounds the wait for a page: a server that ends amid one says nothing.
	scanTry = 2 * time.Second
	// scanPause is how long a server is given that does not have yet what another has.
	scanPause = 10 * time.Millisecond
)

// Scan hands over the messages of a subject in order, from a position to another at which
// there is one, and ends sooner when each returns false or an error. They are asked for in pages,
// of any server that has the stream; to ask for each message takes a round trip, and a consumer for
// each scan would be one more that the servers agree upon, and keep when the host is killed.
func Scan(ctx context.Context, api js.JetStream, stream, subject string, from, to uint64, each func(*js.RawStreamMsg) (bool, error)) error {
	for from <= to {
		next, more, err := scanOnce(ctx, api, stream, subject, from, to, each)
		if err != nil || !more {
			return err
		}
		if next == from && !lifecycle.Wait(ctx, scanPause) {
			return ctx.Err()
		}
		from = next
	}
	return nil
}

// scanOnce hands over a page, or what arrives of it. next is where the one after it begins.
func scanOnce(ctx context.Context, api js.JetStream, stream, subject string, from, to uint64, each func(*js.RawStreamMsg) (bool, error)) (next uint64, more bool, err error) {
	if !api.Conn().IsConnected() { // a request that cannot be sent would leave its subscription behind
		return from, false, nats.ErrConnectionReconnecting
	}
	ctx, cancel := context.WithTimeout(ctx, scanTry)
	defer cancel()
	page, err := jetstreamext.GetBatch(ctx, api, stream, scanPage,
		jetstreamext.GetBatchSubject(subject), jetstreamext.GetBatchSeq(from), jetstreamext.GetBatchMaxBytes(scanBytes))
	if err != nil {
		return from, false, fmt.Errorf("ask for a page: %w", err)
	}
	next = from
	var before uint64 // the message of the page before this one
	for m, err := range page {
		switch {
		case errors.Is(err, jetstreamext.ErrNoMessages) || errors.Is(err, context.DeadlineExceeded):
			return next, true, nil
		case errors.Is(err, jetstreamext.ErrBatchUnsupported): // its name for every answer without a message
			return next, false, fmt.Errorf("%w: %w", nats.ErrNoResponders, err)
		case err != nil:
			return next, false, fmt.Errorf("read a page: %w", err)
		case m.Header.Get(lastSequence) != strconv.FormatUint(before, 10): // one got lost with a connection
			return next, true, nil
		case m.Sequence > to:
			return next, false, nil
		}
		if more, err := each(m); err != nil || !more || m.Sequence == to {
			return next, false, err
		}
		before, next = m.Sequence, m.Sequence+1
	}
	return next, true, nil
}

// lastSequence tells of a message of a page which one was before it; 0: it is the first.
const lastSequence = "Nats-Last-Sequence"
