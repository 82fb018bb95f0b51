package doctor

import (
	"context"
	"time"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
)

// lagWarn is the delay of an event above which the check warns. It allows for the clocks, which
// are compared in whole seconds.
const lagWarn = 2 * time.Second

// lag measures the delay between recording and arrival of an event of a running run. ahead is how
// far the host's clock is ahead of this one.
func (r *report) lag(ctx context.Context, s *session.Session, c *client.Client, ahead time.Duration) {
	page, err := c.Runs(ctx, client.RunQuery{Status: "running", Limit: 1})
	if err != nil || len(page.Runs) == 0 {
		r.add("event-lag", skip, "", "no running run; repeat the check during a run")
		return
	}
	run := page.Runs[0].RunID
	ctx, cancel := context.WithTimeout(ctx, 2*streamWait)
	defer cancel()
	began := s.Now().Truncate(time.Millisecond) // the precision of event timestamps
	for e, err := range c.Follow(ctx, run, client.FollowOptions{From: page.Runs[0].LastSequence + 1}) {
		at, unread := time.Parse(time.RFC3339, e.Timestamp)
		if err != nil || unread != nil {
			break
		}
		// The delay of older events is unknown: they existed before this client connected.
		if at = at.Add(-ahead); at.Before(began) {
			continue
		}
		if late := max(s.Now().Sub(at), 0); late > lagWarn {
			r.add("event-lag", warn, "check the delay of the eventlog service, and proxies between here and the host", "an event of run %s arrived %s after it was recorded", run, show.Duration(late))
		} else {
			r.add("event-lag", ok, "", "an event arrived %s after it was recorded", show.Duration(late))
		}
		return
	}
	r.add("event-lag", skip, "", "run %s recorded no event during the check", run)
}
