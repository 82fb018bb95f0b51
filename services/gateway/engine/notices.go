package engine

import (
	"context"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// notRecorded is the sequence of an item that is no event of the run: SSE gives it no
// id, so that nobody resumes from it.
const notRecorded = -1

// notices sends what happens beside a run to who follows it, until done is called. It
// is called once the stream's headers are out.
func (f *follower) notices(ctx context.Context, s *Service, runID string) (done func()) {
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
					return // who reads the run's events meets it as well
				}
			}
		}
	}()
	return func() {
		cancel()
		l.Close()
		<-ended // nothing may be sent after the stream's handler has returned
	}
}

// sendRaw sends one item; a stream takes one at a time.
func (f *follower) sendRaw(it *openwopv1.RunEventEnvelope) error {
	f.sending.Lock()
	defer f.sending.Unlock()
	return f.out.Send(it)
}
