package runspan

import "context"

type carriedKey struct{}

// In returns a context in which calls to other services join a trace, under the span of a
// traceparent;
// empty means none.
func In(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, carriedKey{}, traceparent)
}

// Of returns the traceparent of a context; empty if none.
func Of(ctx context.Context) string {
	traceparent, _ := ctx.Value(carriedKey{}).(string)
	return traceparent
}
