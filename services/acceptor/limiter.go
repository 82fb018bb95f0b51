package acceptor

import (
	"context"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// maxLargeBodies limits the envelopes with a large asset that are processed at the same
// time. Each needs several times its size: the document, its members, the decoded
// bytes, the request to the redactor and the stored asset.
const maxLargeBodies = 4

// largeBodies is a semaphore that limits the memory of large envelopes. Small
// envelopes do not need it.
type largeBodies chan struct{}

// acquire waits until an envelope of n bytes may be processed. Call release when done.
func (t largeBodies) acquire(ctx context.Context, n int) (leave func(), err error) {
	if n <= accept.MaxPayloadBytes {
		return func() {}, nil
	}
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fault.New(fault.ServiceUnavailable, "too many large assets are being received; try again").
			After(time.Second).Wrap(context.Cause(ctx))
	}
}
