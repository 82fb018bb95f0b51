package anthropic

import (
	"net/http"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// limits are the vendor's rate limits, by the middle part of their header names.
var limits = []string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"}

// maxWait limits the wait accepted from a reset header.
const maxWait = 24 * time.Hour

// retryAfter returns the vendor's requested wait: Retry-After, else the time until the last
// exhausted limit resets, by the server's own clock.
func retryAfter(h http.Header) time.Duration {
	if d := outbound.RetryAfter(h); d > 0 {
		return d
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	var wait time.Duration
	for _, limit := range limits {
		if h.Get("Anthropic-Ratelimit-"+limit+"-Remaining") != "0" {
			continue
		}
		if reset, err := time.Parse(time.RFC3339, h.Get("Anthropic-Ratelimit-"+limit+"-Reset")); err == nil {
			wait = max(wait, reset.Sub(now))
		}
	}
	return min(wait, maxWait)
}
