package completion

import (
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Retry is a further call of an emission that is announced in the log.
type Retry struct {
	// Attempt is its number; the first call is 1. The extra call for prose has none.
	Attempt int
	// Reason and Detail are those of the failure before it; runstate.ReasonProse is
	// that of the extra call.
	Reason, Detail string
}

// resume goes on where an executor was lost, and gives the number of the attempt to make
// next: the one that was announced last, with the room and the correction that it was to
// get. So no announcement is recorded twice, and an emission has no more calls with an
// answer than it may have, however often its executor is lost (OpenWOP envelope contract
// §14.3).
func (c *call) resume(base []provider.Message) (attempt int) {
	attempt = 1
	for _, r := range c.task.Retries {
		c.adapt(failure{reason: r.Reason, detail: r.Detail}, base)
		attempt = r.Attempt
	}
	c.calls = attempt - 1
	return attempt
}

// proseLost reports that the log announces the extra call for prose, and has no answer
// to it.
func (c *call) proseLost() bool {
	return slices.ContainsFunc(c.task.Retries, func(r Retry) bool { return r.Reason == runstate.ReasonProse })
}

// endProse ends an emission whose extra call was lost with its executor. The prose is in
// no log, so that call cannot be made again, and all attempts are used up, or there would
// have been none (OpenWOP envelope contract §14.7).
func (c *call) endProse() Result {
	attempts := c.tries
	for _, r := range c.task.Retries { // the host may have allowed more of them then
		attempts = max(attempts, r.Attempt)
	}
	res := c.usedUp(failure{
		reason: reasonUnknown, code: fault.EnvelopeInvalid, detail: "the executor was lost while the model put its prose into the schema",
	}, attempts)
	c.tag(res.Drafts)
	res.Trust = c.task.Trust
	return res
}
