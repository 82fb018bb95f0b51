package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"unicode/utf8"

	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/redaction"
	"waybill.dev/waybill/services/gateway/runview"
)

// Limits of the parts of a saved view.
const (
	maxViewID      = 64
	maxViewName    = 80
	maxViewColumns = 32
	maxColumnID    = 32
)

func errNoViews() error {
	return fault.New(fault.CapabilityNotProvided, "this host does not store views")
}

// ListSavedViews lists the views that the caller sees, by name.
func (s *Service) ListSavedViews(ctx context.Context, _ *hostv1.ListSavedViewsRequest) (*hostv1.ListSavedViewsResponse, error) {
	if s.deps.Views == nil {
		return nil, errNoViews()
	}
	p := auth.From(ctx)
	all, err := s.deps.Views.list(ctx, p.Tenant, p.Subject())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b storedView) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.ID, b.ID))
	})
	out := &hostv1.ListSavedViewsResponse{}
	for _, v := range all {
		out.Views = append(out.Views, savedView(v, p))
	}
	return out, nil
}

// PutSavedView saves a view of the caller.
func (s *Service) PutSavedView(ctx context.Context, req *hostv1.PutSavedViewRequest) (*hostv1.PutSavedViewResponse, error) {
	if s.deps.Views == nil {
		return nil, errNoViews()
	}
	if err := s.checkView(req); err != nil {
		return nil, err
	}
	p := auth.From(ctx)
	// A secret is no useful name or filter, and may be in a text that was pasted.
	clean, err := s.deps.Texts(ctx, p.Tenant, "", []string{req.GetName(), req.GetFilter()})
	if err != nil || len(clean) != 2 {
		return nil, redaction.Unavailable("the view was not saved", errors.Join(errors.New("view is not redacted"), err))
	}
	v := storedView{
		ID: req.GetViewId(), Name: clean[0], Filter: clean[1], Sort: req.GetSort(), Order: req.GetOrder(),
		Columns: req.GetColumns(), Shared: req.GetShared(), Owner: p.Subject(), UpdatedAt: wire.FormatTime(s.deps.Clock()),
	}
	if err := s.deps.Views.put(ctx, p.Tenant, v); err != nil {
		return nil, err
	}
	return &hostv1.PutSavedViewResponse{View: savedView(v, p)}, nil
}

// DeleteSavedView deletes a view of the caller.
func (s *Service) DeleteSavedView(ctx context.Context, req *hostv1.DeleteSavedViewRequest) (*hostv1.DeleteSavedViewResponse, error) {
	if s.deps.Views == nil {
		return nil, errNoViews()
	}
	p := auth.From(ctx)
	if id := req.GetViewId(); !subject.Token(id) || len(id) > maxViewID {
		return nil, fault.New(fault.NotFound, "you have no view with this id")
	}
	return &hostv1.DeleteSavedViewResponse{}, s.deps.Views.remove(ctx, p.Tenant, p.Subject(), req.GetViewId())
}

func savedView(v storedView, p *auth.Principal) *hostv1.SavedView {
	return &hostv1.SavedView{
		ViewId: v.ID, Name: v.Name, Filter: stringOrNil(v.Filter), Sort: stringOrNil(v.Sort), Order: stringOrNil(v.Order),
		Columns: v.Columns, Shared: v.Shared, Owner: v.Owner, Mine: v.Owner == p.Subject(), UpdatedAt: v.UpdatedAt,
	}
}

func (s *Service) checkView(req *hostv1.PutSavedViewRequest) error {
	var p problems
	if id := req.GetViewId(); !subject.Token(id) || len(id) > maxViewID {
		p.add("/viewId", "want 1 to %d letters, digits, _ or -", maxViewID)
	}
	if n := utf8.RuneCountInString(req.GetName()); n == 0 || n > maxViewName {
		p.add("/name", "want 1 to %d characters", maxViewName)
	}
	if _, err := runview.ParseFilter(req.GetFilter(), s.deps.Clock()); err != nil {
		p = append(p, fault.Problem{Path: "/filter", Message: err.Error(), Allowed: runview.FilterNames})
	}
	if req.Sort != nil && !slices.Contains(RunSorts(), req.GetSort()) {
		p = append(p, fault.Problem{Path: "/sort", Message: "unknown order", Allowed: RunSorts()})
	}
	if req.Order != nil && !slices.Contains(RunOrders(), req.GetOrder()) {
		p = append(p, fault.Problem{Path: "/order", Message: "unknown direction", Allowed: RunOrders()})
	}
	if len(req.GetColumns()) > maxViewColumns {
		p.add("/columns", "want at most %d", maxViewColumns)
	}
	if slices.ContainsFunc(req.GetColumns(), func(c string) bool { return !subject.Token(c) || len(c) > maxColumnID }) {
		p.add("/columns", "want ids of 1 to %d letters, digits, _ or -", maxColumnID)
	}
	return p.err()
}
