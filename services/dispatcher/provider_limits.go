package dispatcher

import (
	"context"

	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// openLimiter creates the limiter of model calls. Calls of limited providers wait until the leases
// of other dispatchers are known.
func (s *Service) openLimiter() {
	s.limiter = limit.NewLimiter(s.cfg.Completion.Providers, s.metrics, s.deps.Clock)
	s.limiter.SetShare(limit.Share{})
}

// shareLimits updates this process's share of the providers' limits when dispatchers join or leave.
func (s *Service) shareLimits(ctx context.Context) error {
	return s.leases.FollowRank(ctx, func(rank, of int) {
		s.limiter.SetShare(limit.Share{Rank: rank, Of: of})
		if ids := s.cfg.Completion.Providers.Exceeded(of); len(ids) > 0 {
			s.deps.Logger.Warn("maxConcurrent is below the number of dispatchers: each dispatcher makes one call at a time, so there can be more calls than the limit", "providers", ids, "dispatchers", of)
		}
	})
}
