package redact

import (
	"context"

	"waybill.dev/waybill/protocol/strictjson"
)

// Call redacts the texts and documents of one request, which share the allowance for compressed data.
// It is not safe for concurrent use.
type Call struct {
	scrub  *Scrubber
	cause  func() error
	budget *callBudget
}

// Call starts a call, which ends early with ctx.
func (s *Scrubber) Call(ctx context.Context) *Call {
	c := &Call{scrub: s, cause: func() error { return context.Cause(ctx) }, budget: newCallBudget()}
	c.budget.stopped = func() bool { return ctx.Err() != nil }
	return c
}

// Text is Scrubber.Text. Errors: those of the context.
func (c *Call) Text(text string) (out string, count int, err error) {
	out, count = c.scrub.text(text, c.budget)
	if err := c.cause(); err != nil {
		return "", 0, err
	}
	return out, count, nil
}

// JSON is Scrubber.JSON. Errors: also those of the context.
func (c *Call) JSON(doc []byte, l strictjson.Limits) (out []byte, count int, err error) {
	out, count, err = c.scrub.json(doc, l, c.budget)
	if cause := c.cause(); cause != nil {
		return nil, 0, cause
	}
	return out, count, err
}
