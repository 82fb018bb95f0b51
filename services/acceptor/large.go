package acceptor

import (
	"context"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// maxLarge is how many envelopes with a large asset are worked on at a time. Each
// takes several times its size for a moment: the document, its parts, the decoded
// bytes, what goes to the redactor and to the store.
const maxLarge = 4

// turnstile bounds the memory that large envelopes take. Small ones pass it by.
type turnstile chan struct{}

// enter waits until there is room for an envelope of n bytes; leave makes room.
func (t turnstile) enter(ctx context.Context, n int) (leave func(), err error) {
	if n <= accept.MaxPayloadBytes {
		return func() {}, nil
	}
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fault.New(fault.ServiceUnavailable, "too many large assets are taken in at the moment; try again").
			After(time.Second).Wrap(context.Cause(ctx))
	}
}
