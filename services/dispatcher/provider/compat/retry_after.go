package compat

import (
	"net/http"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// retryAfter is how long the server asks to wait: by the standard header, or by
// OpenAI's own, which tell it finer or limit by limit. 0 when none does.
func retryAfter(h http.Header) time.Duration {
	if d := outbound.RetryAfter(h); d > 0 {
		return d
	}
	const most = 24 * time.Hour // as much as is believed of the standard header
	var wait time.Duration
	for _, limit := range []string{"Requests", "Tokens"} {
		reset, err := time.ParseDuration(h.Get("X-Ratelimit-Reset-" + limit)) // such as 6m0s
		if err == nil && h.Get("X-Ratelimit-Remaining-"+limit) == "0" {
			wait = max(wait, reset)
		}
	}
	return min(wait, most)
}
