package doctor

import (
	"context"
	"time"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/session"
	"waybill.dev/waybill/internal/cli/show"
)

// lagWarn is how late an event may come before somebody should look: the clocks of two
// machines are compared to the second only.
const lagWarn = 2 * time.Second

// lag says how long events take from being recorded to being here, by a run that is at work;
// ahead is what the host's clock is before this one.
func (r *report) lag(ctx context.Context, s *session.Session, c *client.Client, ahead time.Duration) {
	page, err := c.Runs(ctx, client.RunQuery{Status: "running", Limit: 1})
	if err != nil || len(page.Runs) == 0 {
		r.add("event-lag", skip, "", "no run is at work: look again while one is")
		return
	}
	run := page.Runs[0].RunID
	ctx, cancel := context.WithTimeout(ctx, 2*streamWait)
	defer cancel()
	began := s.Now().Truncate(time.Millisecond) // as events are written
	for e, err := range c.Follow(ctx, run, client.FollowOptions{From: page.Runs[0].LastSequence + 1}) {
		at, unread := time.Parse(time.RFC3339, e.Timestamp)
		if err != nil || unread != nil {
			break
		}
		// Of what was recorded before, nobody knows how long it waited for us.
		if at = at.Add(-ahead); at.Before(began) {
			continue
		}
		if late := max(s.Now().Sub(at), 0); late > lagWarn {
			r.add("event-lag", warn, "see the event log of the host, and what is between: something holds events back", "an event of run %s came %s after it was recorded", run, show.Duration(late))
		} else {
			r.add("event-lag", ok, "", "an event came %s after it was recorded, as far as the clocks agree", show.Duration(late))
		}
		return
	}
	r.add("event-lag", skip, "", "run %s recorded nothing meanwhile", run)
}
