package jetstream

import (
	"context"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"

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
	return l.cfg.durable(info)
}

// Lost counts the records that the log once had and, as its leader had it at the last Check, has
// no more. The host deletes none: a server cuts off what lies behind a damaged record.
func (l *Log) Lost() uint64 { return l.lost.Load() }

func lost(s js.StreamState) uint64 { return s.LastSeq - min(s.LastSeq, s.Msgs) }

// durable tells what a stream lacks in copies.
func (c Config) durable(info *js.StreamInfo) error {
	if n := info.Config.Replicas; n < c.Replicas {
		return fmt.Errorf("%w: it has %d copies, and %d are wanted", runlog.ErrUnavailable, n, c.Replicas)
	}
	wanted := c.InSync
	if wanted == 0 {
		wanted = info.Config.Replicas/2 + 1
	}
	if n := inSync(info.Cluster); n < wanted {
		return fmt.Errorf("%w: %d of its %d copies are in sync, and %d must be", runlog.ErrUnavailable, n, info.Config.Replicas, wanted)
	}
	return nil
}

// inSync counts the copies that have all that was acknowledged: the leader's, and those
// of its followers that are there and have caught up.
func inSync(c *js.ClusterInfo) int {
	switch {
	case c == nil: // one server that is no cluster
		return 1
	case c.Leader == "":
		return 0
	}
	n := 1
	for _, p := range c.Replicas {
		if p.Current && !p.Offline {
			n++
		}
	}
	return n
}
