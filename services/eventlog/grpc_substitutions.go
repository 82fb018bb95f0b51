package eventlog

import (
	"context"
	"slices"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// Limits of the substitutions counted in one answer, and of the runs named per pair.
const (
	maxSubstitutions = 5000
	maxNamedRuns     = 5
)

// ListSubstitutions counts substituted models in a tenant's runs, the most recent pair first. It
// counts the latest substitutions; if there are more, it returns the time from which it counted.
func (s *Service) ListSubstitutions(ctx context.Context, req *eventlogv1.ListSubstitutionsRequest) (*eventlogv1.ListSubstitutionsResponse, error) {
	at, err := time.Parse(time.RFC3339, req.GetSince())
	if err != nil {
		return nil, fault.InvalidQuery("since", "want a time of RFC 3339")
	}
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	since := wire.FormatTime(at)
	found, err := s.store.Substitutions(ctx, req.GetTenant(), since, maxSubstitutions+1)
	if err != nil {
		return nil, s.failure(store.Key{}, err)
	}
	if len(found) > maxSubstitutions {
		found = found[:maxSubstitutions]
		since = found[len(found)-1].At
	}
	return &eventlogv1.ListSubstitutionsResponse{Since: since, Substitutions: counted(found)}, nil
}

// counted groups substitutions, newest first, by pairs of models.
func counted(found []store.Substitution) []*eventlogv1.Substitution {
	type pair struct{ original, fallback modelgate.Model }
	var (
		out  []*eventlogv1.Substitution
		byIt = map[pair]*eventlogv1.Substitution{}
		runs = map[pair]map[string]bool{}
	)
	for _, f := range found {
		p := pair{f.Original, f.Fallback}
		s := byIt[p]
		if s == nil {
			s = &eventlogv1.Substitution{
				OriginalProvider: f.Original.Provider, OriginalModel: f.Original.Model,
				FallbackProvider: f.Fallback.Provider, FallbackModel: f.Fallback.Model,
				Missing: slices.Clone(f.Missing), LastAt: f.At,
			}
			byIt[p], runs[p] = s, map[string]bool{}
			out = append(out, s)
		}
		s.Count++
		if runs[p][f.RunID] {
			continue
		}
		runs[p][f.RunID] = true
		if s.Runs++; s.GetRuns() <= maxNamedRuns {
			s.RunIds = append(s.RunIds, f.RunID)
		}
	}
	return out
}
