package jetstream

import (
	"context"
	"strconv"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/protocol/frame"
)

// message returns the message that appends a frame to a run whose last position is after. A new run
// (0) must have no frame with its id, under any workflow.
func message(f *frame.Frame, after uint64) *nats.Msg {
	all := f.Run
	if after == 0 {
		all.WorkflowID = ""
	}
	m := &nats.Msg{Subject: f.Run.Frame(f.Kind), Header: make(nats.Header, 12), Data: f.Body}
	for k, v := range f.Headers() {
		m.Header[k] = []string{v}
	}
	m.Header[js.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(after, 10)}
	m.Header[js.ExpectedLastSubjSeqSubjHeader] = []string{all.All()}
	return m
}

// publish is one attempt of an append.
func (l *Log) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	try := publishTimeout
	if p := l.cfg.Patience; p > 0 {
		try = min(try, p/2) // leaves time to look for the frame if the acknowledgement is lost
	}
	ctx, cancel := context.WithTimeout(ctx, try)
	defer cancel()
	var ack *js.PubAck
	err := l.link.Once(ctx, func(ctx context.Context) (err error) {
		ack, err = l.js.PublishMsg(ctx, m, js.WithRetryAttempts(0))
		return err
	})
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}
