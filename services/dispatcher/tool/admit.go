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

// Admit admits a call within the operator's limits; see engine.Limiter. A refused call is not made: its
// node waits as for a provider without capacity.
func (m Router) Admit(ctx context.Context, t model.Task) (release func(), reason *wire.NodeError, err error) {
	r, ok := m.Runners[t.TypeID]
	if !ok || m.Limits == nil || m.Acquire == nil || t.Replay {
		return nil, nil, nil
	}
	c := Call{TypeID: t.TypeID, Tenant: t.Tenant, Config: t.Input.Config}
	if l, ok := r.(Limited); ok {
		c.Arguments = l.Arguments(t.Input)
	}
	limits, priority := m.Limits().Of(c)
	if len(limits) == 0 {
		return nil, nil, nil
	}
	// The attempts of a node that only waited are one call.
	id := t.RunID + " " + t.Input.NodeID + " " + strconv.Itoa(t.Attempt-t.Waits)
	a, err := m.Acquire(ctx, t.RunID, id, limits)
	if err != nil || a.Release != nil {
		return a.Release, nil, err
	}
	return nil, &wire.NodeError{
		Code:       string(fault.RateLimited),
		Message:    fmt.Sprintf("the operator's limit of the %s is used up; no call was made", limits[a.Limit].Name),
		Retryable:  true,
		Capacity:   true,
		RetryAfter: a.Wait + pause(t.Waits, priority),
	}, nil
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
