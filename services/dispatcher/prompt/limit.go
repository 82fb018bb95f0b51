package prompt

import (
	"fmt"

	"waybill.dev/waybill/protocol/fault"
)

// maxComposed limits the text of a composition, and separately the values of its variables. A
// template can name a long value many times, and many variables can hold it. It equals the limit of
// an answer.
const maxComposed = 2 << 20

// maxRecorded limits the event of a call as JSON. Under full it contains the text twice and the
// values once; escapes and markers can make it longer. A frame has 8 MiB, and recording a larger
// event would fail on every retry.
const maxRecorded = 3 * maxComposed

// origin is the declaration of a variable.
type origin struct{ template, variable string }

func (o origin) tooLong(format string, args ...any) *fault.Error {
	e := fault.New(fault.ContentTooLong, "%s", fmt.Sprintf(format, args...)).With("template", o.template)
	if o.variable != "" {
		e = e.With("variable", o.variable)
	}
	return e
}

// bindTooLong rejects the value that exceeds the limit of all values.
func bindTooLong(o origin) *fault.Error {
	return o.tooLong("the values of the prompt's variables have more than %d bytes with that of %q of the template %s; give it a shorter one", maxComposed, o.variable, o.template)
}

// textTooLong rejects the placeholder at which the text exceeds the limit.
func textTooLong(o origin) *fault.Error {
	if o.variable == "" {
		return o.tooLong("the prompt has more than %d bytes with the template %s; name fewer templates, or shorter values", maxComposed, o.template)
	}
	return o.tooLong("the prompt has more than %d bytes with the variable %q in the template %s; give it a shorter value, or name it less often", maxComposed, o.variable, o.template)
}

// checkShown rejects a composition that became too long by the markers of its secrets.
func (c *Composition) checkShown() *fault.Error {
	values := 0
	for _, raw := range c.variables {
		values += len(raw)
	}
	if max(len(c.shown.System)+len(c.shown.User), values) <= 2*maxComposed {
		return nil
	}
	return c.largestValue().tooLong("the prompt has more than %d bytes with the marks of its secrets in their places; give its secrets shorter ids", 2*maxComposed)
}

// largestValue returns the variable with the longest value, else the first template.
func (c *Composition) largestValue() (found origin) {
	size := 0
	for name, raw := range c.variables {
		o, known := c.origins[name]
		if known && (len(raw) > size || len(raw) == size && o.variable < found.variable) {
			found, size = o, len(raw)
		}
	}
	if found.template == "" && len(c.Refs) > 0 {
		found.template = c.Refs[0]
	}
	return found
}
