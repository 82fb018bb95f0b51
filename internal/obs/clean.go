package obs

import (
	"context"
	"fmt"
	"log/slog"
)

// Clean is a logger whose records have passed clean before they are written. What
// is logged of an error may quote anything (OpenWOP envelope contract §11, sinks).
func Clean(log *slog.Logger, clean func(string) string) *slog.Logger {
	return slog.New(&cleaner{log.Handler(), clean})
}

// cleaner is the handler of such a logger.
type cleaner struct {
	next  slog.Handler
	clean func(string) string
}

// Enabled asks the handler that writes.
func (c *cleaner) Enabled(ctx context.Context, l slog.Level) bool { return c.next.Enabled(ctx, l) }

// Handle hands on a clean record.
func (c *cleaner) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, c.clean(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(c.attr(a))
		return true
	})
	return c.next.Handle(ctx, out)
}

// WithAttrs cleans the attributes once.
func (c *cleaner) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = c.attr(a)
	}
	return &cleaner{c.next.WithAttrs(out), c.clean}
}

// WithGroup begins a group.
func (c *cleaner) WithGroup(name string) slog.Handler {
	return &cleaner{c.next.WithGroup(c.clean(name)), c.clean}
}

func (c *cleaner) attr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: c.clean(a.Key), Value: c.value(a.Value.Resolve())}
}

// value cleans what is text, or becomes text when it is written.
func (c *cleaner) value(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(c.clean(v.String()))
	case slog.KindGroup:
		var out []slog.Attr
		for _, a := range v.Group() {
			out = append(out, c.attr(a))
		}
		return slog.GroupValue(out...)
	case slog.KindAny:
		if b, ok := v.Any().([]byte); ok {
			return slog.StringValue(c.clean(string(b)))
		}
		return slog.StringValue(c.clean(fmt.Sprintf("%+v", v.Any())))
	default:
		return v // a number, a truth value or a time
	}
}
