package jetstream

import (
	"context"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
)

// Check asks whether the log can be reached, and is as durable as it should be: it has as
// many copies as are wanted, and enough of them are in sync.
func (l *Log) Check(ctx context.Context) error {
	ctx, cancel := l.patient(ctx)
	defer cancel()
	var info *js.StreamInfo
	err := l.link.Once(ctx, func(ctx context.Context) (err error) {
		info, err = l.stream.Info(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", runlog.ErrUnavailable, err)
	}
	l.lost.Store(lost(info.State))
	if err := (natslink.Copies{Replicas: l.cfg.Replicas, InSync: l.cfg.InSync}).Check(info); err != nil {
		return fmt.Errorf("%w: %w", runlog.ErrUnavailable, err)
	}
	return nil
}

// Lost counts the records that the log once had and, as its leader had it at the last Check, has
// no more. The host deletes none: a server cuts off what lies behind a damaged record.
func (l *Log) Lost() uint64 { return l.lost.Load() }

func lost(s js.StreamState) uint64 { return s.LastSeq - min(s.LastSeq, s.Msgs) }
