package seam

import (
	"context"
	"net/http"

	"waybill.dev/waybill/internal/promptkey"
)

// cacheKey returns the cache key of a model request, whose members are those of the body (OpenWOP
// host contract §7.3, appendix A).
func (h *Handler) cacheKey(_ context.Context, _ *http.Request, body []byte) (any, error) {
	key, err := promptkey.Of(body)
	if err != nil {
		return nil, argument("%s", err)
	}
	return map[string]string{"cacheKey": key}, nil
}
