package rest

import (
	"net/http"

	"waybill.dev/waybill/services/gateway/admission"
)

// limitRate applies the rate limits, and reports their state in the answer.
func (h *Handler) limitRate(w http.ResponseWriter, r *http.Request, route *Route, from admission.Caller) error {
	quotas, err := h.deps.Rates.Take(h.routeClass(r, route), from)
	if len(quotas) > 0 {
		policy, limit := admission.Headers(quotas)
		w.Header().Set("RateLimit-Policy", policy)
		w.Header().Set("RateLimit", limit)
	}
	if err != nil {
		return refused{err}
	}
	return nil
}

// routeClass returns the class of a request. route is nil if it is not translated.
func (h *Handler) routeClass(r *http.Request, route *Route) admission.RouteClass {
	switch st := h.streamOf(r.URL.Path); {
	case st != nil && r.Method == http.MethodGet && !wantsJSON(r.Header.Get("Accept")):
		return admission.RouteClassOf(st.method)
	case route != nil:
		return admission.RouteClassOf(route.Method)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return admission.ReadRoutes
	default:
		return admission.WriteRoutes
	}
}
