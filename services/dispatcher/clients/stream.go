package clients

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/rpc/sticky"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
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

// scrub is a text that is streamed through the redactor. If the redactor is lost, another one gets
// the whole text again: otherwise the call whose answer it is would have to be repeated.
type scrub struct {
	scrubber

	ctx    context.Context //nolint:containedctx // the context of the text; reopening uses it
	stream redactorv1.Redactor_RedactStreamClient
	cancel context.CancelFunc
	// text is what was pushed, released the redacted text that was returned.
	text, released strings.Builder
	// repeated is what the present redactor will release, and the one before it has released.
	repeated string
}

// lostRedactor is how long another redactor is looked for.
var lostRedactor = retry.Policy{Base: 100 * time.Millisecond, Max: 2 * time.Second, Total: time.Minute}

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

// Push sends a piece and returns the text that it releases.
func (s *scrub) Push(piece string, last bool) (string, error) {
	s.text.WriteString(piece)
	push := func() (string, error) { return s.push(piece, last) }
	for waits := lostRedactor.Start(); ; {
		var text string
		err := s.redactor.Registrations.retryUnregistered(s.ctx, s.at, func() (err error) {
			text, err = push()
			push = func() (string, error) { return s.pushAgain(last) }
			return err
		})
		if err == nil {
			s.released.WriteString(text)
			return text, nil
		}
		if fault.CodeOf(err) != fault.ServiceUnavailable || isUnregistered(err) || !waits.Wait(s.ctx) {
			return "", err
		}
	}
}

// pushAgain sends the whole text to another redactor.
func (s *scrub) pushAgain(last bool) (string, error) {
	s.cancel()
	if err := s.open(); err != nil {
		return "", err
	}
	s.repeated = s.released.String()
	return s.push(s.text.String(), last)
}

// push sends a piece. It returns the released text without what was released before.
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
	text := res.GetText()
	n := min(len(text), len(s.repeated))
	if text[:n] != s.repeated[:n] || last && n < len(s.repeated) {
		return "", errors.New("redactor: the run's secrets have changed while its text was redacted")
	}
	s.repeated = s.repeated[n:]
	return text[n:], nil
}

func (s *scrub) Close() { s.cancel() }
