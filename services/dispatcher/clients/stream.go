package clients

import (
	"context"
	"fmt"

	"waybill.dev/waybill/internal/rpc/sticky"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/dispatcher/model"
)

type scrubber struct {
	redactor   Redactor
	at         scope
	registered bool
}

func (s scrubber) Open(ctx context.Context) (model.Scrub, error) {
	out := &scrub{scrubber: s, ctx: ctx}
	return out, out.open()
}

// scrub is a text that is streamed through the redactor.
type scrub struct {
	scrubber

	ctx    context.Context //nolint:containedctx // the context of the text; reopening uses it
	stream redactorv1.Redactor_RedactStreamClient
	cancel context.CancelFunc
	begun  bool
}

func (s *scrub) open() error {
	ctx, cancel := context.WithCancel(sticky.With(s.ctx, s.at.tenant))
	stream, err := s.redactor.Client.RedactStream(ctx)
	if err != nil {
		cancel()
		return fmt.Errorf("redactor: %w", err)
	}
	s.stream, s.cancel = stream, cancel
	return nil
}

// Push sends a piece. Before the first response no text is held back, so the stream can be reopened
// with a redactor that has all registrations.
func (s *scrub) Push(piece string, last bool) (string, error) {
	var text string
	push := func() (err error) {
		text, err = s.push(piece, last)
		return err
	}
	if s.begun {
		err := push()
		return text, err
	}
	tries := 0
	err := s.redactor.Registrations.retryUnregistered(s.ctx, s.at, func() error {
		if tries++; tries > 1 {
			s.cancel()
			if err := s.open(); err != nil {
				return err
			}
		}
		return push()
	})
	s.begun = err == nil
	return text, err
}

func (s *scrub) push(piece string, last bool) (string, error) {
	// A failed stream returns its error from Recv.
	_ = s.stream.Send(&redactorv1.RedactStreamRequest{
		Scope: s.redactor.Registrations.scope(s.at, s.registered),
		Text:  piece,
		Last:  last,
	})
	res, err := s.stream.Recv()
	if err != nil {
		return "", fmt.Errorf("redactor: %w", err)
	}
	return res.GetText(), nil
}

func (s *scrub) Close() { s.cancel() }
