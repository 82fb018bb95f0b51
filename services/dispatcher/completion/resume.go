package completion

import "waybill.dev/waybill/services/dispatcher/provider"

// Retry is a further call of an emission that is announced in the log.
type Retry struct {
	// Attempt is its number; the first call is 1.
	Attempt int
	// Reason and Detail are those of the failure before it.
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
