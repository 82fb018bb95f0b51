package outbound_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// headers returns headers with the server's date, which is second 1,793,000,000.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	h.Set("Date", time.Unix(1_793_000_000, 0).UTC().Format(http.TimeFormat))
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// The wait is what the server requests, in whichever header.
func TestWait_OfHeaders(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		header http.Header
		want   time.Duration
	}{
		"nothing":                    {headers(), 0},
		"Retry-After":                {headers("Retry-After", "7"), 7 * time.Second},
		"Retry-After, space":         {headers("Retry-After", " 7 "), 7 * time.Second},
		"Retry-After, RFC 3339":      {headers("Retry-After", "2026-10-26T07:33:30Z"), 10 * time.Second},
		"Retry-After, an epoch":      {headers("Retry-After", "1793000010"), 10 * time.Second},
		"Retry-After-Ms":             {headers("Retry-After-Ms", "1500", "Retry-After", "9"), 1500 * time.Millisecond},
		"Retry-After-Ms of 0":        {headers("Retry-After-Ms", "0", "Retry-After", "9"), 9 * time.Second},
		"Retry-After before limits":  {headers("Retry-After", "3", "X-Ratelimit-Reset-Requests", "9s", "X-Ratelimit-Remaining-Requests", "0"), 3 * time.Second},
		"OpenAI, requests":           {headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1m30s"), 90 * time.Second},
		"OpenAI, tokens":             {headers("X-Ratelimit-Remaining-Requests", "9", "X-Ratelimit-Reset-Requests", "17ms", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "6m0s"), 6 * time.Minute},
		"OpenAI, both":               {headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "2s"), 2 * time.Second},
		"OpenAI, none exhausted":     {headers("X-Ratelimit-Remaining-Requests", "9", "X-Ratelimit-Reset-Requests", "1s"), 0},
		"Groq":                       {headers("X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "7.66s"), 7660 * time.Millisecond},
		"Groq, a day":                {headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "2h59m56.5s"), 2*time.Hour + 59*time.Minute + 56500*time.Millisecond},
		"Azure":                      {headers("X-Ratelimit-Remaining-Requests", "-1", "X-Ratelimit-Reset-Requests", "10"), 10 * time.Second},
		"Cerebras":                   {headers("X-Ratelimit-Remaining-Tokens-Minute", "0", "X-Ratelimit-Reset-Tokens-Minute", "11.382"), 11382 * time.Millisecond},
		"Together":                   {headers("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "2"), 2 * time.Second},
		"Together, without a rest":   {headers("X-Ratelimit-Reset", "2"), 2 * time.Second},
		"Mistral":                    {headers("Ratelimitbysize-Remaining", "0", "Ratelimitbysize-Reset", "30"), 30 * time.Second},
		"OpenRouter, milliseconds":   {headers("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1793000012000"), 12 * time.Second},
		"an epoch in seconds":        {headers("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1793000012"), 12 * time.Second},
		"an epoch with a fraction":   {headers("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1793000012.5"), 12 * time.Second},
		"an epoch that is over":      {headers("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1792999999"), 0},
		"another dash":               {headers("X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "4"), 4 * time.Second},
		"GitHub":                     {headers("X-Ratelimit-Type", "UserByModelByMinute", "X-Ratelimit-Timeremaining", "30"), 30 * time.Second},
		"Anthropic":                  {headers("Anthropic-Ratelimit-Input-Tokens-Remaining", "0", "Anthropic-Ratelimit-Input-Tokens-Reset", "2026-10-26T07:33:38Z"), 18 * time.Second},
		"Anthropic, not exhausted":   {headers("Anthropic-Ratelimit-Requests-Remaining", "3", "Anthropic-Ratelimit-Requests-Reset", "2026-10-26T07:33:38Z"), 0},
		"Anthropic, a subscription":  {headers("Anthropic-Ratelimit-Unified-5h-Status", "rejected", "Anthropic-Ratelimit-Unified-5h-Reset", "1793000600", "Anthropic-Ratelimit-Unified-7d-Status", "allowed_warning", "Anthropic-Ratelimit-Unified-7d-Reset", "1793060000"), 10 * time.Minute},
		"IETF, three headers":        {headers("Ratelimit-Limit", "10", "Ratelimit-Remaining", "0", "Ratelimit-Reset", "5"), 5 * time.Second},
		"IETF, one header":           {headers("Ratelimit", "limit=10, remaining=0, reset=5"), 5 * time.Second},
		"IETF, a structured field":   {headers("Ratelimit", `"default";r=0;t=5`), 5 * time.Second},
		"IETF, two limits":           {headers("Ratelimit", `"burst";r=3;t=60, "day";r=0;t=5`), 5 * time.Second},
		"IETF, not exhausted":        {headers("Ratelimit", `"default";r=50;t=30`), 0},
		"text":                       {headers("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "soon"), 0},
		"below zero":                 {headers("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "-5"), 0},
		"not a number":               {headers("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "NaN"), 0},
		"infinite":                   {headers("Retry-After", "Inf"), 0},
		"a century":                  {headers("Retry-After", "999999999"), 24 * time.Hour},
		"a number beyond any":        {headers("Retry-After", "1e300"), 24 * time.Hour},
		"a limit, not of its resets": {headers("X-Ratelimit-Limit-Requests", "60"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := outbound.ServerError{Status: http.StatusTooManyRequests, Header: tc.header}
			require.Equal(t, tc.want, e.Wait())
		})
	}
	e := outbound.ServerError{Status: http.StatusInternalServerError, Header: headers("X-Ratelimit-Reset", "60")}
	require.Zero(t, e.Wait(), "another failure is not about the limit")
	e = outbound.ServerError{Status: http.StatusTooManyRequests, Header: http.Header{"X-Ratelimit-Reset": {"1793000012"}}}
	require.Zero(t, e.Wait(), "without the server's date")
}

// The wait of an error's document is read if no header has it.
func TestWait_OfDocuments(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]time.Duration{
		`{"error":{"message":"slow down","retry_after":5}}`:              5 * time.Second,
		`{"error":{"message":"slow down"},"retry_after":2.5}`:            2500 * time.Millisecond,
		`{"error":{"message":"slow down","retryAfter":"7s"}}`:            7 * time.Second,
		`{"error":{"message":"slow down","retry_after_ms":250}}`:         250 * time.Millisecond,
		`{"error":{"message":"slow down","retry_after_seconds":9}}`:      9 * time.Second,
		`{"error":"Model x is currently loading","estimated_time":20.0}`: 20 * time.Second,
		`{"error":{"code":429,"message":"x","metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1793000012000"}}}}`: 12 * time.Second,
		`{"error":{"code":429,"message":"x","metadata":{"headers":{"Retry-After":"8"}}}}`:                                                                        8 * time.Second,
		`{"error":{"message":"Try again in 500 ms."}}`:                                                                                                           500 * time.Millisecond,
		`{"error":{"message":"Try again in 250 milliseconds."}}`:                                                                                                 250 * time.Millisecond,
		`{"error":{"message":"Rate limit reached. Please try again in 1h2m3s."}}`:                                                                                time.Hour + 2*time.Minute + 3*time.Second,
		`{"error":{"message":"Please wait 20 s and call again."}}`:                                                                                               20 * time.Second,
		`{"error":{"message":"Limit resets in: 40 seconds"}}`:                                                                                                    40 * time.Second,
		`{"error":{"message":"Please retry after 22 secs"}}`:                                                                                                     22 * time.Second,
		`{"error":{"message":"try again in 99999999999999999999h"}}`:                                                                                             0,
		`{"error":{"message":"try again in 99999999999999999999 hours"}}`:                                                                                        0,
		`{"error":{"message":"try again in 2 sprints"}}`:                                                                                                         0,
		`{"error":{"message":"retry later","retry_after":null}}`:                                                                                                 0,
		`{"error":{"message":"x","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37s"}]}}`:                                          37 * time.Second,
	} {
		e := outbound.ServerError{Status: http.StatusTooManyRequests, Header: headers(), Body: outbound.ParseError([]byte(doc))}
		require.Equal(t, want, e.Wait(), doc)
	}
}
