package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/client"
)

// retentionLag is how far the time of retention may be behind the host's clock.
const retentionLag = 2 * time.Hour

// retention reports the ended runs by age, and what the next day erases. now is the host's clock.
func (r *report) retention(ctx context.Context, c *client.Client, now time.Time) {
	const check = "retention"
	d, err := c.Retention(ctx)
	if lacksPath(err) {
		r.add(check, skip, "", "the host has no retention of runs")
		return
	}
	if err != nil {
		r.add(check, warn, "check the log of the dispatcher", "%v", err)
		return
	}
	var ages []string
	for _, a := range d.Ages {
		switch {
		case a.Runs == 0:
		case a.ToDays == 0:
			ages = append(ages, fmt.Sprintf("%d of more than %d days", a.Runs, a.FromDays))
		default:
			ages = append(ages, fmt.Sprintf("%d of %d-%d days", a.Runs, a.FromDays, a.ToDays))
		}
	}
	text := fmt.Sprintf("%s; %d ended runs", d.Retention, d.Runs)
	if len(ages) > 0 {
		text += " (" + strings.Join(ages, ", ") + ")"
	}
	text += fmt.Sprintf("; the next day erases %d; %d with a legal hold", d.Due+d.DueNextDay, d.Holds)
	at, err := time.Parse(time.RFC3339, d.Now)
	if late := now.Sub(at); err == nil && late > retentionLag {
		r.add(check, warn, "check the clock of the host; if it is right, retention catches up by itself",
			"%s; the time that retention counts with is %s behind the host's clock", text, late.Round(time.Minute))
		return
	}
	r.add(check, ok, "", "%s", text)
}
