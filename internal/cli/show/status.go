package show

import (
	"fmt"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
)

// Who says who has to act for a run to go on; empty: nobody.
func Who(r runstate.Snapshot) string {
	switch {
	case r.Status == wire.StatusPaused:
		return "paused: waits for somebody to resume it"
	case r.Interrupt != nil:
		return fmt.Sprintf("waits for somebody to answer %s (%s): %s", r.Interrupt.NodeID, r.Interrupt.Kind,
			Question(string(r.Interrupt.Kind), r.Interrupt.Payload.Data))
	case r.Status.Waiting() && r.CurrentNodeID != "":
		return fmt.Sprintf("waits for somebody to answer %s", r.CurrentNodeID)
	case r.Status.Waiting():
		return "waits for somebody to answer"
	case r.Status == wire.StatusPending:
		return "queued: waits for a dispatcher, a free slot or a limit"
	default:
		return ""
	}
}

// Took is how long a run has taken so far; empty where its times are unknown.
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

// Age is how long ago a time was; empty for one that is unknown.
func Age(at string, now time.Time) string { return Took(at, "", now) }

// Duration is a length of time in at most two units.
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

// Clock is the local time of day of an event.
func Clock(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return at
	}
	return t.Local().Format("15:04:05.000")
}

// Cost sums up what the models of a run took. What is not known is said to be unknown.
func Cost(m *runstate.Metrics) string {
	usd := "cost unknown"
	if m.Cost.USD != nil {
		usd = strconv.FormatFloat(*m.Cost.USD, 'f', -1, 64) + " USD (estimate)"
	}
	return join(", ", join("/", m.Cost.Provider, m.Cost.Model), fmt.Sprintf("%d tokens in, %d out", m.Cost.Tokens.Input, m.Cost.Tokens.Output), usd)
}
