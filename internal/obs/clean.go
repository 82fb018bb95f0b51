package obs

import (
	"context"
	"fmt"
	"log/slog"
)

// Clean returns a logger that applies clean to all texts of a record. A logged error may
// contain anything (OpenWOP envelope contract §11, sinks).
func Clean(log *slog.Logger, clean func(string) string) *slog.Logger {
	return slog.New(&cleaningHandler{log.Handler(), clean})
}

// cleaningHandler is the handler of such a logger.
type cleaningHandler struct {
	next  slog.Handler
	clean func(string) string
}

// Enabled implements slog.Handler.
func (c *cleaningHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return c.next.Enabled(ctx, l)
}

// Handle cleans a record and passes it to the next handler.
func (c *cleaningHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, c.clean(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(c.cleanAttr(a))
		return true
	})
	return c.next.Handle(ctx, out)
}

// WithAttrs cleans the attributes once.
func (c *cleaningHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = c.cleanAttr(a)
	}
	return &cleaningHandler{c.next.WithAttrs(out), c.clean}
}

// WithGroup implements slog.Handler.
func (c *cleaningHandler) WithGroup(name string) slog.Handler {
	return &cleaningHandler{c.next.WithGroup(c.clean(name)), c.clean}
}

func (c *cleaningHandler) cleanAttr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: c.clean(a.Key), Value: c.cleanValue(a.Value.Resolve())}
}

// cleanValue cleans a text, or a value that is written as text.
func (c *cleaningHandler) cleanValue(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(c.clean(v.String()))
	case slog.KindGroup:
		var out []slog.Attr
		for _, a := range v.Group() {
			out = append(out, c.cleanAttr(a))
		}
		return slog.GroupValue(out...)
	case slog.KindAny:
		if b, ok := v.Any().([]byte); ok {
			return slog.StringValue(c.clean(string(b)))
		}
		return slog.StringValue(c.clean(fmt.Sprintf("%+v", v.Any())))
	default:
		return v // a number, a boolean or a time
	}
}
