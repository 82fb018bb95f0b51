package engine

import (
	"context"
	"fmt"
	"strconv"
	"time"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// Limits of OpenWOP host contract §4.7.
const (
	defaultPollSeconds = 30
	maxPollSeconds     = 60
	defaultEvents      = 1000
	maxEvents          = 5000
)

// readGrace is the time a read may take in addition to its wait.
const readGrace = 5 * time.Second

// PollRunEvents returns the events after a sequence. If there are none and the run is live,
// it waits (OpenWOP host contract §4.7).
func (s *Service) PollRunEvents(ctx context.Context, req *hostv1.PollRunEventsRequest) (*hostv1.PollRunEventsResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	after, wait, limit, err := pollParams(req)
	if err != nil {
		return nil, err
	}
	// The caller's wait, plus time for the read.
	ctx, cancel := context.WithTimeout(ctx, time.Duration(wait)*time.Second+readGrace)
	defer cancel()
	res, err := s.deps.EventLog.ReadEvents(ctx, &eventlogv1.ReadEventsRequest{
		Tenant: auth.From(ctx).Tenant, RunId: req.GetRunId(), After: after, Limit: limit, WaitMs: wait * 1000,
	})
	if err != nil {
		return nil, err
	}
	setMeta(ctx, MetaHead, strconv.Itoa(int(res.GetHead())))
	out := &hostv1.PollRunEventsResponse{RunId: req.GetRunId(), LastEventSeq: after, RunStatus: res.GetStatus()}
	for _, e := range res.GetEvents() {
		out.Events = append(out.Events, &openwopv1.JsonDocument{Json: e.GetDocument()})
		out.LastEventSeq = e.GetSequence()
	}
	if after > res.GetHead() {
		name, given := "lastSequence", req.GetLastSequence()
		if req.LastSequence == nil {
			name, given = "since", req.GetSince()
		}
		out.Notice = new(beyondEnd(name, given, res.GetHead()))
	}
	out.IsTerminal = wire.Status(res.GetStatus()).Terminal()
	out.IsComplete = out.IsTerminal && out.GetLastEventSeq() >= res.GetHead()
	return out, nil
}

// beyondEnd is the error of a cursor of another run or another host.
func beyondEnd(name string, cursor int64, head int32) string {
	if cursor < 1<<62-1 { // that of a Last-Event-ID with too many digits
		name += " " + strconv.FormatInt(cursor, 10)
	}
	return fmt.Sprintf("%s is beyond the run's last event, %d; continue from there", name, head)
}

func pollParams(req *hostv1.PollRunEventsRequest) (after, wait, limit int32, err error) {
	var p problems
	after, wait, limit = -1, defaultPollSeconds, defaultEvents
	if req.Since != nil {
		after = cursor(req.GetSince())
	}
	if req.LastSequence != nil { // it takes precedence over since
		after = cursor(req.GetLastSequence())
	}
	if after < -1 {
		name := "lastSequence"
		if req.LastSequence == nil {
			name = "since"
		}
		p.add(name, "want an integer of at least 0, or -1 for the start")
	}
	if req.Timeout != nil {
		if wait = req.GetTimeout(); wait < 1 || wait > maxPollSeconds {
			p.addQuery("timeout", "want 1 to %d seconds", maxPollSeconds)
		}
	}
	if req.Limit != nil {
		if limit = req.GetLimit(); limit < 1 || limit > maxEvents {
			p.addQuery("limit", "want 1 to %d events", maxEvents)
		}
	}
	return after, wait, limit, p.err()
}

// cursor limits a cursor to the range of the read model.
func cursor(n int64) int32 { return int32(min(max(n, -2), maxCursor)) } //nolint:gosec // G115: bounded just here

// errTooManyStreams is the error at the stream limit.
func errTooManyStreams(limit int64) error {
	return fault.New(fault.RateLimited, "the host has reached its limit of event streams, or this tenant its share; retry").
		With("scope", "global").With("limit", limit).With("retryAfterMs", retryStreams.Milliseconds()).After(retryStreams)
}
