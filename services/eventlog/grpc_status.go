package eventlog

import (
	"context"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
)

// GetReadModelStatus describes the read model. Positions and counters are far below 2^63.
func (s *Service) GetReadModelStatus(ctx context.Context, _ *eventlogv1.GetReadModelStatusRequest) (*eventlogv1.GetReadModelStatusResponse, error) {
	st := s.ingest.Stats()
	out := &eventlogv1.GetReadModelStatusResponse{
		Applied: int64(st.Applied), DamagedFrames: st.Damaged, Rebuilds: st.Rebuilds, Followers: s.hub.Subscriptions(), //nolint:gosec // G115: see above
	}
	end, err := s.log.End(ctx)
	if err != nil {
		out.Problem, out.End = "the run log cannot be reached", out.GetApplied()
		return out, nil //nolint:nilerr // the answer has it
	}
	out.End = max(int64(end), out.GetApplied()) //nolint:gosec // G115: see above
	if s.ingest.Ready() != nil {                // its text is for the log: it may have the address of the database
		out.Problem = "the read model is not current; the log of its process says why"
	}
	return out, nil
}
