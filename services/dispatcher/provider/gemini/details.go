package gemini

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genai"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// details are what an error says to machines.
type details struct {
	reason string // ErrorInfo
	field  string // the first violated one of BadRequest
	delay  string // RetryInfo
	daily  bool   // QuotaFailure: the day's is used up, not the minute's
}

// detail is any of google.rpc's error details.
type detail struct {
	Type            string `json:"@type"`
	Reason          string `json:"reason"`
	RetryDelay      string `json:"retryDelay"`
	FieldViolations []struct {
		Field string `json:"field"`
	} `json:"fieldViolations"`
	Violations []struct {
		QuotaID string `json:"quotaId"`
	} `json:"violations"`
}

func detailsOf(api genai.APIError) details {
	var out details
	for _, m := range api.Details {
		raw, _ := json.Marshal(m) // it came out of JSON
		var d detail
		if json.Unmarshal(raw, &d) != nil {
			continue // of another shape: it says nothing we know
		}
		out.add(d)
	}
	return out
}

func (d *details) add(one detail) {
	switch {
	case strings.HasSuffix(one.Type, "google.rpc.ErrorInfo"):
		d.reason = one.Reason
	case strings.HasSuffix(one.Type, "google.rpc.RetryInfo"):
		d.delay = one.RetryDelay
	case strings.HasSuffix(one.Type, "google.rpc.BadRequest") && len(one.FieldViolations) > 0:
		d.field = one.FieldViolations[0].Field
	case strings.HasSuffix(one.Type, "google.rpc.QuotaFailure"):
		for _, v := range one.Violations {
			d.daily = d.daily || strings.Contains(v.QuotaID, "PerDay")
		}
	}
}

// retryAfter is the wait the vendor asks for, bounded as that of the header is.
func (d details) retryAfter() time.Duration {
	seconds, ok := strings.CutSuffix(d.delay, "s")
	if !ok {
		return 0
	}
	return outbound.RetryAfter(http.Header{"Retry-After": {seconds}})
}

// quota tells a rate, which passes, from an account that is used up, which waiting
// does not help: the vendor asks for half a minute even where the day is over.
func (d details) quota(status string) *provider.Error {
	e := &provider.Error{Code: provider.CodeQuota, Message: "the vendor refused for its rate limit", Retryable: true}
	switch {
	case status == paymentRequired:
		e.Message, e.Retryable = "the account with the vendor is used up", false
	case d.daily:
		e.Message, e.Retryable = "the account's quota of the day is used up", false
	}
	return e
}
