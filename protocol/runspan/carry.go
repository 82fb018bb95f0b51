package runspan

import "context"

type carriedKey struct{}

// In is a context in which calls of other services join a trace, under the span that a
// traceparent names; empty: under none.
func In(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, carriedKey{}, traceparent)
}

// Of is the traceparent that a context carries; empty: none.
func Of(ctx context.Context) string {
	traceparent, _ := ctx.Value(carriedKey{}).(string)
	return traceparent
}
