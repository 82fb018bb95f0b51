package compat

import (
	"net/http"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// retryAfter returns the server's requested wait: from the standard header, or from OpenAI's
// headers, which are more precise or per limit. 0 means none.
func retryAfter(h http.Header) time.Duration {
	if d := outbound.RetryAfter(h); d > 0 {
		return d
	}
	const most = 24 * time.Hour // the same limit as for the standard header
	var wait time.Duration
	for _, limit := range []string{"Requests", "Tokens"} {
		reset, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-" + limit)) // such as 6m0s
		if err == nil && h.Get("X-Ratelimit-Remaining-"+limit) == "0" {
			wait = max(wait, reset)
		}
	}
	return min(wait, most)
}
