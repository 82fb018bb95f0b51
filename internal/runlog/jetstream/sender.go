package jetstream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/protocol/frame"
)

// Headers of a batch (NATS ADR-50).
const (
	batchIDHeader       = "Nats-Batch-Id"
	batchSequenceHeader = "Nats-Batch-Sequence"
	batchCommitHeader   = "Nats-Batch-Commit"
)

// newEntry is the append of a frame to a run that ends at position after. A new run,
// after 0, must have no frame of its id, under whatever workflow.
func newEntry(f *frame.Frame, after uint64) entry {
	all := f.Run
	if after == 0 {
		all.WorkflowID = ""
	}
	e := entry{run: all.All(), msg: &nats.Msg{Subject: f.Run.Frame(f.Kind), Header: make(nats.Header, 12), Data: f.Body}}
	for k, v := range f.Headers() {
		e.msg.Header[k] = []string{v}
	}
	e.msg.Header[js.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(after, 10)}
	e.msg.Header[js.ExpectedLastSubjSeqSubjHeader] = []string{e.run}
	return e
}

// sender is the carrier over a connection.
type sender struct {
	js     js.JetStream
	stream js.Stream
	link   *natslink.Link
}

func (s sender) many(batch []*ticket) (last uint64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	err = s.link.Once(ctx, func(ctx context.Context) error {
		id, nc := rand.Text(), s.js.Conn()
		for i, t := range batch[:len(batch)-1] {
			if err := nc.PublishMsg(t.within(id, i+1)); err != nil {
				return fmt.Errorf("%w: %w", errBatch, err) // what is not sent whole is not stored
			}
		}
		end := batch[len(batch)-1].within(id, len(batch))
		end.Header.Set(batchCommitHeader, "1")
		reply, err := nc.RequestMsgWithContext(ctx, end)
		if errors.Is(err, nats.ErrMaxPayload) {
			return fmt.Errorf("%w: %w", errBatch, err)
		}
		if err != nil {
			return err
		}
		if last, err = acknowledged(reply.Data, uint64(len(batch))); err != nil {
			return err
		}
		return s.ends(ctx, last, end)
	})
	return last, err
}

// ends looks whether the position that was acknowledged is that of a batch's last
// message, for all others are counted from it. A server that stops while it stores a
// batch can acknowledge one that has an end missing.
func (s sender) ends(ctx context.Context, pos uint64, last *nats.Msg) error {
	m, err := s.stream.GetMsg(ctx, pos)
	if err != nil || m.Header.Get(batchIDHeader) != last.Header.Get(batchIDHeader) || m.Header.Get(batchSequenceHeader) != last.Header.Get(batchSequenceHeader) {
		return fmt.Errorf("%w: the batch does not end at %d", natslink.ErrLost, pos)
	}
	return nil
}

// within is the message as part of a batch.
func (e entry) within(batch string, n int) *nats.Msg {
	m := &nats.Msg{Subject: e.msg.Subject, Header: maps.Clone(e.msg.Header), Data: e.msg.Data}
	m.Header[batchIDHeader] = []string{batch}
	m.Header[batchSequenceHeader] = []string{strconv.Itoa(n)}
	return m
}

// acknowledged reads what the server says of a batch.
func acknowledged(reply []byte, size uint64) (last uint64, err error) {
	var ack struct {
		Sequence uint64       `json:"seq"`
		Count    uint64       `json:"count"`
		Error    *js.APIError `json:"error"`
	}
	switch err := json.Unmarshal(reply, &ack); {
	case err != nil:
		return 0, fmt.Errorf("acknowledgement of a batch: %w", err)
	case ack.Error != nil:
		return 0, fmt.Errorf("%w: %w", errBatch, ack.Error)
	case ack.Count != size || ack.Sequence < size:
		return 0, fmt.Errorf("acknowledgement of a batch of %d: %d messages up to %d", size, ack.Count, ack.Sequence)
	}
	return ack.Sequence, nil
}

func (s sender) one(ctx context.Context, e entry) (uint64, error) {
	var ack *js.PubAck
	err := s.link.Once(ctx, func(ctx context.Context) (err error) {
		ack, err = s.js.PublishMsg(ctx, e.msg, js.WithRetryAttempts(0))
		return err
	})
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}
