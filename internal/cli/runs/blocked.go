package runs

import (
	"fmt"
	"time"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/show"
)

// limited describes the limit that a run waits for; empty if there is none.
func limited(l *client.Limit, now time.Time) string {
	if l == nil {
		return ""
	}
	text := limitWords(l)
	if l.Since != "" {
		text += ", since " + l.Since + " (" + show.Age(l.Since, now) + ")"
	}
	if l.Until != "" {
		text += ", until at least " + l.Until
	}
	return text
}

// limitWords describes a limit: its kind, its value and where it is set.
func limitWords(l *client.Limit) string {
	setBy := "the workflow's"
	if l.Scope == "tenant" {
		setBy = "the tenant's"
	}
	perKey := ""
	if l.Keyed {
		perKey = " for each key"
	}
	switch l.Reason {
	case "capacity":
		return fmt.Sprintf("a free slot of a dispatcher (--max-runs %d)", l.Limit)
	case "concurrency":
		return fmt.Sprintf("%s concurrency limit: %d at a time%s", setBy, l.Limit, perKey)
	case "rate":
		period := show.Duration(time.Duration(l.PeriodMs) * time.Millisecond)
		return fmt.Sprintf("%s rate limit: %d starts in %s%s", setBy, l.Limit, period, perKey)
	case "retry":
		return "a retry after a failed attempt"
	default:
		return l.Reason
	}
}

// remedies are the fixes for quarantined runs, by reason.
var remedies = map[string]string{ //nolint:gochecknoglobals // a constant
	"log_damaged":        "its log is damaged: restore the log from a backup; until then it cannot be ended",
	"definition_missing": "its workflow definition is missing: restore it from a backup",
	"engine_version":     "it needs a newer engine: upgrade the dispatchers",
	"panic":              "its execution panics: upgrade the dispatchers",
	"cannot_continue":    "the dispatcher's log has the error",
}

// quarantined describes why and since when a run is quarantined; empty if it is not.
func quarantined(q *client.QuarantinedRun, now time.Time) string {
	if q == nil {
		return ""
	}
	text := q.Reason
	if q.Since != "" {
		text += ", since " + q.Since + " (" + show.Age(q.Since, now) + ")"
	}
	if helps := remedies[q.Reason]; helps != "" {
		text += "; " + helps
	}
	return text
}

// release describes how to retry or end a quarantined run; empty if it is not quarantined.
func release(q *client.QuarantinedRun) string {
	if q == nil {
		return ""
	}
	text := "waybill run quarantine retry " + q.RunID
	if q.Reason != "log_damaged" { // nothing can be appended to its log
		text += ", or waybill run quarantine end " + q.RunID
	}
	return text
}
