package model

import (
	"context"
	"slices"

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
// next, with the room, the correction and the schemas that it was to get. So nothing is
// announced twice, and an emission has no more calls with an answer than it may have,
// however often its executor is lost (OpenWOP envelope contract §8, §14.3).
func (c *call) resume(ctx context.Context, base []provider.Message) (attempt int, err error) {
	announced, wrong := 1, 0
	for _, r := range c.task.Retries {
		if r.Reason == runstate.ReasonProse { // the extra call is none of the attempts
			continue
		}
		wrong++
		c.adapt(failure{reason: r.Reason, detail: r.Detail}, base)
		announced = r.Attempt
	}
	if err := c.relearn(ctx); err != nil {
		return 0, err
	}
	// Each turn before was wrong, and a retry announced, or went by in talk alone.
	attempt = max(announced, 1+wrong+c.round)
	if attempt > announced {
		c.req.Messages = base // the last turn was talk, and needs no correction
	}
	c.calls = attempt - 1
	return attempt, nil
}

// relearn gives the model the schemas that it asked for in the turns which the log has.
func (c *call) relearn(ctx context.Context) error {
	for c.round = 0; ; c.round++ {
		asked := c.talk()
		if len(asked) == 0 {
			return nil
		}
		for _, a := range asked {
			if a.Kind != kindSchemaRequest {
				continue
			}
			if err := c.teach(ctx, a.Payload); err != nil {
				return err
			}
		}
	}
}

// partly reports that the log has a part of the answer that is asked for, and no more. All of
// its text has been shown before then.
func (c *call) partly() bool {
	last, ok := c.lastRecorded()
	return ok && !last.Answer.Last() && last.Sequence > c.task.Announced
}

// talk is what the log has of a turn that was about schemas alone; none if it was not,
// or if a part of it is missing: then it was wrong, and a retry is announced, or it was
// cut off, and the model is asked for it again.
func (c *call) talk() []Recorded {
	turn, whole := c.lastTurn()
	if !whole || slices.ContainsFunc(turn, func(r Recorded) bool { return !sideChannel(r.Kind) }) {
		return nil
	}
	return turn
}

// proseLost reports that the log announces the extra call for prose, and has no answer
// to it.
func (c *call) proseLost() bool {
	return slices.ContainsFunc(c.task.Retries, func(r Retry) bool { return r.Reason == runstate.ReasonProse })
}

// proseAgain makes the extra call whose executor was lost. The prose is in no log: the model
// is asked for it again, as the same invocation, so that it is what it was where the vendor
// keeps answers, and it is told once (OpenWOP host contract §5.5, envelope contract §14.7).
func (c *call) proseAgain(ctx context.Context, attempt int, base []provider.Message) Result {
	c.tries = max(c.tries, attempt) // the host may have allowed more of them then
	c.ordinal = c.nth(attempt - 1)
	res, fail := c.ask(ctx)
	if fail != nil {
		return *fail
	}
	var v verdict
	if _, _, failed := classify(res); !failed && isProse(res.Text) {
		v = c.convert(ctx, res.Text, base)
	} else { // another answer than before
		v = c.judge(ctx, res, attempt)
	}
	if v.done != nil {
		return *v.done
	}
	return c.usedUp(v.failure, attempt)
}
