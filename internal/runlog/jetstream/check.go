package jetstream

import (
	"context"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
)

// Check reports whether the log is reachable and as durable as configured: it has enough copies,
// and enough of them are in sync.
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

// Lost counts records that the log no longer had at the last Check, according to its leader. The
// host deletes none; a server truncates its file after a damaged record.
func (l *Log) Lost() uint64 { return l.lost.Load() }

func lost(s js.StreamState) uint64 { return s.LastSeq - min(s.LastSeq, s.Msgs) }
