package show

import (
	"fmt"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// WaitReason describes what a run waits for; empty if it does not wait.
func WaitReason(r runstate.Snapshot) string {
	switch {
	case r.Status == wire.StatusPaused:
		return "paused: waits to be resumed"
	case r.Interrupt != nil:
		return fmt.Sprintf("waits for an answer at %s (%s): %s", r.Interrupt.NodeID, r.Interrupt.Kind,
			Question(string(r.Interrupt.Kind), r.Interrupt.Payload.Data))
	case r.Status.Waiting() && r.CurrentNodeID != "":
		return fmt.Sprintf("waits for an answer at %s", r.CurrentNodeID)
	case r.Status.Waiting():
		return "waits for an answer"
	case r.Status == wire.StatusPending:
		return "queued: waits for a dispatcher, a free slot or a limit"
	default:
		return ""
	}
}

// Took formats the duration of a run so far; empty if its start is unknown.
func Took(started, completed string, now time.Time) string {
	from, err := time.Parse(time.RFC3339, started)
	if err != nil {
		return ""
	}
	to, err := time.Parse(time.RFC3339, completed)
	if err != nil {
		to = now
	}
	return Duration(to.Sub(from))
}

// Age formats the time since at; empty if at is unknown.
func Age(at string, now time.Time) string { return Took(at, "", now) }

// Duration formats a duration in at most two units.
func Duration(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd", int(d.Hours())/24)
	}
}

// Clock formats a timestamp as local time of day.
func Clock(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.Local().Format("15:04:05.000")
}

// Cost summarizes the model, tokens and cost of a run.
func Cost(m *runstate.Metrics) string {
	usd := "cost unknown"
	if m.Cost.USD != nil {
		usd = strconv.FormatFloat(*m.Cost.USD, 'f', -1, 64) + " USD (estimate)"
	}
	return join(", ", join("/", m.Cost.Provider, m.Cost.Model), fmt.Sprintf("%d tokens in, %d out", m.Cost.Tokens.Input, m.Cost.Tokens.Output), usd)
}
