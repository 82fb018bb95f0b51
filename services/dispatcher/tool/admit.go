package tool

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
)

// Pauses before a call that a limit refused is tried again. The window doubles with each wait, and
// the pause is chosen at random from it, so that waiting runs do not return together.
const (
	minPause    = 50 * time.Millisecond
	firstWindow = 250 * time.Millisecond
	maxWindow   = 10 * time.Second
	// longestWindow is that of the lowest priorities.
	longestWindow = time.Minute
)

// admit admits a call within the operator's limits. A refused call is not made: its node waits as for
// a provider without capacity, in the log and without a slot, and no dispatcher that dies leaves its
// outcome unknown.
func (m Router) admit(ctx context.Context, r Runner, t model.Task) (release func(), refused *model.Result) {
	none := func() {}
	if m.Limits == nil || m.Admit == nil || t.Replay {
		return none, nil
	}
	c := Call{TypeID: t.TypeID, Tenant: t.Tenant, Config: t.Input.Config}
	if l, ok := r.(Limited); ok {
		c.Arguments = l.Arguments(t.Input)
	}
	limits, priority := m.Limits().Of(c)
	if len(limits) == 0 {
		return none, nil
	}
	// The attempts of a node that only waited are one call.
	id := t.RunID + " " + t.Input.NodeID + " " + strconv.Itoa(t.Attempt-t.Waits)
	a, err := m.Admit(ctx, t.RunID, id, limits)
	switch {
	case err != nil:
		return nil, &model.Result{Interrupted: err, Unsent: true}
	case a.Release != nil:
		return a.Release, nil
	}
	return nil, &model.Result{Err: &wire.NodeError{
		Code:       string(fault.RateLimited),
		Message:    fmt.Sprintf("the operator's limit of the %s is used up; no call was made", limits[a.Limit].Name),
		Retryable:  true,
		Capacity:   true,
		RetryAfter: a.Wait + pause(t.Waits, priority),
	}}
}

// pause returns a random pause. Two levels of priority halve the window, or double it.
func pause(waits, priority int) time.Duration {
	window := maxWindow
	if waits < 6 {
		window = min(firstWindow<<max(waits, 0), maxWindow)
	}
	if levels := (max(priority, -priority) + 1) / 2; priority > 0 {
		window >>= levels
	} else {
		window = min(window<<levels, longestWindow)
	}
	return minPause + rand.N(window) //nolint:gosec // G404: jitter
}
