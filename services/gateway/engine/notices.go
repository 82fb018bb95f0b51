package engine

import (
	"context"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// notRecorded is the sequence of items that are not events of the run. SSE gives them no id,
// so no client resumes from them.
const notRecorded = -1

// sendNotices sends notifications about the run, such as new annotations, to its follower
// until done is called. It must be called after the stream's headers were sent.
func (f *follower) sendNotices(ctx context.Context, s *Service, runID string) (done func()) {
	if s.deps.Annotations == nil || !f.modes.Notices() {
		return func() {}
	}
	l := s.deps.Annotations.Listen(auth.From(ctx).Tenant, runID)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ctx.Done():
				return
			case doc := <-l.C():
				err := f.sendRaw(&openwopv1.RunEventEnvelope{
					Sequence: notRecorded, Event: AnnotationEvent, Data: &openwopv1.JsonDocument{Json: doc},
				})
				if err != nil {
					return // the event loop gets the same error
				}
			}
		}
	}()
	return func() {
		cancel()
		l.Close()
		<-ended // gRPC forbids sends after the handler has returned
	}
}

// sendRaw sends one item. Sends are serialized.
func (f *follower) sendRaw(it *openwopv1.RunEventEnvelope) error {
	f.sending.Lock()
	defer f.sending.Unlock()
	return f.out.Send(it)
}
