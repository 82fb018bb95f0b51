package jetstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	if n, err := l.notErased(ctx, info.State); err == nil { // otherwise the next check continues to count
		l.lost.Store(n)
	}
	if err := (natslink.Copies{Replicas: l.cfg.Replicas, InSync: l.cfg.InSync}).Check(info); err != nil {
		return fmt.Errorf("%w: %w", runlog.ErrUnavailable, err)
	}
	return nil
}

// Lost counts records that the log no longer had at the last Check, according to its leader, except
// those of erased runs. A server truncates its file after a damaged record.
func (l *Log) Lost() uint64 { return l.lost.Load() }

// maxMissing limits the ranges that Missing returns.
const maxMissing = 16

// Missing describes which positions have no record, the first ones if they are many; empty if none or
// unknown.
func (l *Log) Missing(ctx context.Context) string {
	ctx, cancel := l.patient(ctx)
	defer cancel()
	var info *js.StreamInfo
	err := l.link.Once(ctx, func(ctx context.Context) (err error) {
		info, err = l.stream.Info(ctx, js.WithDeletedDetails(true))
		return err
	})
	if err != nil {
		return ""
	}
	all := ranges(info.State.Deleted)
	if first := info.State.FirstSeq; first > 1 { // the server lists only those after the first
		all = slices.Insert(all, 0, runlog.Span{From: 1, To: first - 1})
	}
	erased, err := l.erasedSpans(ctx)
	if err != nil {
		return ""
	}
	return describe(runlog.Except(all, erased))
}

// ranges returns the ranges of positions that are in order.
func ranges(positions []uint64) (all []runlog.Span) {
	for _, p := range positions {
		if n := len(all); n > 0 && all[n-1].To+1 == p {
			all[n-1].To = p
			continue
		}
		all = append(all, runlog.Span{From: p, To: p})
	}
	return all
}

// describe describes the first ranges.
func describe(all []runlog.Span) string {
	var texts []string
	for _, s := range all[:min(len(all), maxMissing)] {
		texts = append(texts, fmt.Sprintf("%d-%d", s.From, s.To))
	}
	if len(all) > maxMissing {
		texts = append(texts, "and others")
	}
	return strings.Join(texts, ", ")
}

// State returns the size of the log in bytes and the time of its newest record; the zero time if it has
// none. Errors: runlog.ErrUnavailable.
func (l *Log) State(ctx context.Context) (bytes uint64, newest time.Time, err error) {
	err = l.link.Ask(ctx, func(ctx context.Context) error {
		info, err := l.stream.Info(ctx)
		if err == nil {
			bytes, newest = info.State.Bytes, info.State.LastTime
		}
		return err
	})
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("%w: state of the log: %w", runlog.ErrUnavailable, err)
	}
	return bytes, newest, nil
}

func lost(s js.StreamState) uint64 { return s.LastSeq - min(s.LastSeq, s.Msgs) }
