package engine

import (
	"context"
	"sync"
	"time"

	"waybill.dev/waybill/internal/version"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// partTimeout is how long a service may take, so that one that hangs does not hide the others.
const partTimeout = 2 * time.Second

// GetSystem describes the installation. A service that does not answer is a problem of the answer, not
// of the call: operators need the rest most then.
func (s *Service) GetSystem(ctx context.Context, _ *hostv1.GetSystemRequest) (*hostv1.GetSystemResponse, error) {
	out := &hostv1.GetSystemResponse{Now: wire.FormatTime(s.deps.Clock()), Version: version.Version}
	problem := func(part, message string) {
		out.Problems = append(out.Problems, &hostv1.SystemProblem{Part: part, Message: message})
	}
	var (
		wg            sync.WaitGroup
		d             *dispatcherv1.GetDispatchStatusResponse
		e             *eventlogv1.GetReadModelStatusResponse
		derr, readErr error
	)
	parts, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	wg.Go(func() { d, derr = s.deps.Dispatcher.GetDispatchStatus(parts, &dispatcherv1.GetDispatchStatusRequest{}) })
	wg.Go(func() {
		e, readErr = s.deps.EventLog.GetReadModelStatus(parts, &eventlogv1.GetReadModelStatusRequest{})
	})
	wg.Wait()
	if s.deps.Warnings != nil {
		for _, w := range s.deps.Warnings() {
			problem("host", w)
		}
	}
	if derr != nil {
		problem("dispatcher", "no dispatcher responds: "+publicText(derr))
	} else {
		s.addDispatcher(out, d)
		if d.GetQueue() == nil {
			problem("dispatcher", "the queue cannot be read")
		}
	}
	if readErr != nil {
		problem("eventlog", "the read model does not respond: "+publicText(readErr))
	} else {
		out.ReadModel = &hostv1.SystemReadModel{
			Applied: e.GetApplied(), Behind: e.GetEnd() - e.GetApplied(), DamagedRecords: e.GetDamagedFrames(), Rebuilds: e.GetRebuilds(),
			Followers: e.GetFollowers(),
		}
		if out.Log != nil {
			out.Log.End = e.GetEnd()
		}
		if p := e.GetProblem(); p != "" {
			problem("eventlog", p)
		}
	}
	return out, ctx.Err()
}

// publicText returns the text of an error that callers may read.
func publicText(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return "unreachable"
}

// addDispatcher adds what a dispatcher reports.
func (s *Service) addDispatcher(to *hostv1.GetSystemResponse, d *dispatcherv1.GetDispatchStatusResponse) {
	for _, p := range d.GetDispatchers() {
		to.Dispatchers = append(to.Dispatchers, &hostv1.SystemDispatcher{
			Process: p.GetProcess(), Host: p.GetHost(), State: p.GetState(), StartedAt: p.GetStarted(), RenewedAt: p.GetRenewed(),
			ExpiresAt: p.GetExpires(), Runs: p.GetRuns(),
		})
	}
	if q := d.GetQueue(); q != nil {
		to.Queue = &hostv1.SystemQueue{Waiting: q.GetWaiting(), Taken: q.GetTaken(), Limited: q.GetLimited()}
	}
	to.Log = &hostv1.SystemLog{Bytes: d.LogBytes, NewestAt: stringOrNil(d.GetLogNewest())}
	for _, p := range d.GetProviders() {
		shown := &hostv1.SystemProvider{
			Provider: p.GetId(), MaxConcurrent: positive(p.GetMaxConcurrent()), RequestsPerMinute: positive(p.GetRequestsPerMinute()),
			TokensPerMinute: positive(p.GetTokensPerMinute()), InFlight: p.GetInFlight(), Waiting: p.GetWaiting(),
			HeldUntil: stringOrNil(p.GetHeldUntil()), LastSuccessAt: stringOrNil(p.GetLastSuccessAt()),
		}
		if p.GetLastErrorCode() != "" {
			shown.LastError = &hostv1.SystemProviderError{Code: p.GetLastErrorCode(), Status: positive(p.GetLastErrorStatus()), At: p.GetLastErrorAt()}
		}
		to.Providers = append(to.Providers, shown)
	}
}

// positive returns nil for 0.
func positive(n int32) *int32 {
	if n <= 0 {
		return nil
	}
	return &n
}
