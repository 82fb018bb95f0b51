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

// details are the structured details of an error.
type details struct {
	reason string // ErrorInfo
	field  string // first violated field of BadRequest
	delay  string // RetryInfo
	daily  bool   // QuotaFailure: the daily quota is used up
}

// detail is one of google.rpc's error details.
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
		raw, _ := json.Marshal(m) // decoded values always render
		var d detail
		if json.Unmarshal(raw, &d) != nil {
			continue // an unknown detail
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

// retryAfter returns the vendor's requested wait, limited like the header's.
func (d details) retryAfter() time.Duration {
	seconds, ok := strings.CutSuffix(d.delay, "s")
	if !ok {
		return 0
	}
	return outbound.RetryAfter(http.Header{"Retry-After": {seconds}})
}

// quota distinguishes a temporary rate limit from an exhausted account, for which the vendor still
// requests half a minute.
func (d details) quota(status, message string) *provider.Error {
	e := &provider.Error{Code: provider.CodeQuota, Message: "the vendor refused for its rate limit", Retryable: true}
	switch {
	case status == paymentRequired:
		e.Message, e.Retryable = "the account with the vendor is used up", false
	case strings.Contains(message, "credits are depleted"): // of prepaid accounts
		e.Message, e.Retryable = "the account with the vendor is used up", false
	case d.daily:
		e.Message, e.Retryable = "the account's quota of the day is used up", false
	}
	return e
}
