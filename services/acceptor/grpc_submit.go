package acceptor

import (
	"context"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// CheckSubmit validates submitted values against a recorded surface (OpenWOP envelope
// contract §18, on submit). It does not change the values.
func (h handler) CheckSubmit(ctx context.Context, req *acceptorv1.CheckSubmitRequest) (*acceptorv1.CheckSubmitResponse, error) {
	run, err := parseRun(req.GetRun())
	if err != nil {
		return nil, err
	}
	for name, n := range map[string]int{"values": len(req.GetValues()), "resume_schema": len(req.GetResumeSchema())} {
		if n > accept.MaxPayloadBytes {
			return nil, fault.New(fault.PayloadTooLarge, "%s: %d bytes, the limit is %d", name, n, accept.MaxPayloadBytes)
		}
	}
	r, err := h.s.ledger.FindRecord(ctx, run, req.GetCorrelationId())
	switch {
	case err != nil:
		return nil, err
	case r == nil || r.Type != accept.KindSurface:
		return nil, fault.New(fault.NotFound, "correlation_id: the run has no surface with this id")
	}
	surface, err := a2ui.Parse(r.Payload)
	if err != nil {
		return nil, err // cannot happen: the surface was validated before it was recorded
	}
	_, wrong, err := surface.Submit(req.GetValues(), req.GetResumeSchema())
	if err != nil {
		return nil, fault.New(fault.ValidationError, "resume_schema: cannot be used as a JSON Schema").Wrap(err)
	}
	resp := &acceptorv1.CheckSubmitResponse{ContentTrust: string(r.Events[0].ContentTrust.Meet(wire.Trusted))}
	resp.Problems, err = h.s.redactProblems(ctx, run, req.GetRegistrations(), wrong)
	return resp, err
}

// maxProblems limits the problems in one response.
const maxProblems = 32

// redactProblems redacts problems: a path can contain the name of a submitted member.
func (s *Service) redactProblems(ctx context.Context, run subject.Run, registrations []string, wrong []a2ui.Problem) ([]*acceptorv1.Problem, error) {
	if len(wrong) == 0 {
		return nil, nil
	}
	now, err := s.ledger.RunInfo(ctx, run)
	if err != nil {
		return nil, err
	}
	wrong = wrong[:min(len(wrong), maxProblems)]
	texts := make([]string, 0, 2*len(wrong))
	for _, p := range wrong {
		texts = append(texts, p.Path, p.Message)
	}
	needs := now.Registration
	needs.Told = registrations
	clean, err := s.redactor.Texts(ctx, run, needs, texts)
	if err != nil {
		return nil, err
	}
	out := make([]*acceptorv1.Problem, len(wrong))
	for i := range wrong {
		out[i] = &acceptorv1.Problem{Path: clean[2*i], Message: clean[2*i+1]}
	}
	return out, nil
}
