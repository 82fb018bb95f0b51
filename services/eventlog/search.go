package eventlog

import (
	"context"
	"errors"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/eventlog/store"
)

// errSlowSearch is the cause of a context whose search took too long.
var errSlowSearch = errors.New("search timed out")

// searching limits the time of a query that searches words: short ones may be in most runs, while
// none of these has all of them.
func (s *Service) searching(ctx context.Context, q store.Query) (context.Context, context.CancelFunc) {
	if q.Words == "" {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, s.cfg.SearchTimeout, errSlowSearch)
}

// searchFailure is failure for the context of searching.
func (s *Service) searchFailure(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSlowSearch) {
		return fault.InvalidQuery("filter", "text: the search took longer than %s; use longer words, or add since: and until:", s.cfg.SearchTimeout)
	}
	return s.failure(store.Key{}, err)
}
