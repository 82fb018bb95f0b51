package dispatcher

import (
	"context"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
)

// GetDispatchStatus describes the queue, the dispatchers, the log and the providers. Counts are far below 2^31.
func (s *Service) GetDispatchStatus(ctx context.Context, _ *dispatcherv1.GetDispatchStatusRequest) (*dispatcherv1.GetDispatchStatusResponse, error) {
	out := &dispatcherv1.GetDispatchStatusResponse{Process: s.leases.Process()}
	for _, r := range s.leases.All() {
		out.Dispatchers = append(out.Dispatchers, &dispatcherv1.DispatcherStatus{
			Process: r.Process, Host: r.Host, State: string(r.State), Started: timestamp(r.Started), Renewed: timestamp(r.Renewed),
			Expires: timestamp(r.Until()), Runs: int32(r.Runs), //nolint:gosec // G115: see above
		})
	}
	if d, err := s.queue.Depth(ctx); err == nil {
		out.Queue = &dispatcherv1.QueueStatus{Waiting: int64(d.Waiting), Taken: int64(d.InDelivery), Limited: int64(d.Limited)}
	}
	if state := s.deps.LogState; state != nil {
		if bytes, newest, err := state(ctx); err == nil {
			size := int64(bytes) //nolint:gosec // G115: no disk has 2^63 bytes
			out.LogBytes, out.LogNewest = &size, timestamp(newest)
		}
	}
	for _, p := range s.limiter.States(s.deps.Providers.IDs()) {
		out.Providers = append(out.Providers, &dispatcherv1.ProviderStatus{
			Id: p.Provider, MaxConcurrent: int32(p.MaxConcurrent), RequestsPerMinute: int32(p.RequestsPerMinute), TokensPerMinute: int32(p.TokensPerMinute), //nolint:gosec // G115: see above
			InFlight: int32(p.InFlight), Waiting: int32(p.Waiting), HeldUntil: timestamp(p.HeldUntil), //nolint:gosec // G115: see above
			LastErrorCode: p.LastErrorCode, LastErrorStatus: int32(p.LastErrorStatus), LastErrorAt: timestamp(p.LastErrorAt), LastSuccessAt: timestamp(p.LastSuccessAt), //nolint:gosec // G115: see above
		})
	}
	return out, nil
}
