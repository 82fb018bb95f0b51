package redactor

import (
	"context"
	"errors"
	"io"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/redactor/redact"
	"waybill.dev/waybill/services/redactor/secrets"
)

// handler implements the gRPC service: decode, call, encode.
type handler struct {
	redactorv1.UnimplementedRedactorServer

	s *Service
}

// Redact redacts documents and texts. Errors: fault.ValidationError,
// fault.PayloadTooLarge, fault.ServiceUnavailable for missing registrations.
func (h handler) Redact(ctx context.Context, req *redactorv1.RedactRequest) (*redactorv1.RedactResponse, error) {
	scrubber, err := h.scrubber(req.GetScope())
	if err != nil {
		return nil, err
	}
	if err := h.checkLimits(req); err != nil {
		return nil, err
	}
	resp := &redactorv1.RedactResponse{}
	call := scrubber.Call(ctx)
	for i, doc := range req.GetDocuments() {
		out, n, err := call.JSON(doc, h.s.limits())
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, errDocument(i, err)
		}
		resp.Documents = append(resp.Documents, out)
		resp.Count += int32(n) //nolint:gosec // G115: fewer occurrences than bytes, which MaxBytes bounds
	}
	for _, text := range req.GetTexts() {
		out, n, err := call.Text(text)
		if err != nil {
			return nil, err
		}
		resp.Texts = append(resp.Texts, out)
		resp.Count += int32(n) //nolint:gosec // G115: as above
	}
	return resp, nil
}

// errDocument reports which document is invalid. The error contains nothing of the
// document, since that is not redacted.
func errDocument(i int, err error) error {
	f := fault.New(fault.ValidationError, "documents[%d]: not a valid JSON value within the limits", i)
	if e, ok := errors.AsType[*strictjson.Error](err); ok {
		f = f.With("rule", e.Rule).With("offset", e.Offset)
	}
	return f
}

func (h handler) checkLimits(req *redactorv1.RedactRequest) error {
	if n := len(req.GetDocuments()) + len(req.GetTexts()); n > h.s.cfg.MaxItems {
		return fault.New(fault.PayloadTooLarge, "%d documents and texts in one request, the limit is %d", n, h.s.cfg.MaxItems)
	}
	total := 0
	for _, d := range req.GetDocuments() {
		total += len(d)
	}
	for _, t := range req.GetTexts() {
		total += len(t)
	}
	if total > h.s.cfg.MaxBytes {
		return fault.New(fault.PayloadTooLarge, "%d bytes in one request, the limit is %d", total, h.s.cfg.MaxBytes)
	}
	return nil
}

// scrubber returns the scrubber with the secrets of a scope.
func (h handler) scrubber(scope *redactorv1.Scope) (*redact.Scrubber, error) {
	at, err := parseScope(scope)
	if err != nil {
		return nil, err
	}
	return h.s.registry.Scrubber(at, secrets.Required{
		Run:           scope.GetRequireRegistered(),
		Tenant:        scope.GetRequireTenantRegistered(),
		Registrations: scope.GetRegistrations(),
	})
}

func parseScope(scope *redactorv1.Scope) (secrets.Scope, error) {
	if scope.GetTenant() == "" {
		return secrets.Scope{}, fault.Empty("scope.tenant")
	}
	return secrets.Scope{Tenant: scope.GetTenant(), Run: scope.GetRunId()}, nil
}

// RedactStream answers every piece with the text that is settled so far.
func (h handler) RedactStream(stream redactorv1.Redactor_RedactStreamServer) error {
	var text *redact.Stream
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if text == nil {
			scrubber, err := h.scrubber(req.GetScope())
			if err != nil {
				return err
			}
			text = scrubber.Stream()
		}
		resp, err := h.redactPiece(text, req)
		if err != nil {
			return err
		}
		if err := stream.Send(resp); err != nil || req.GetLast() {
			return err
		}
	}
}

func (h handler) redactPiece(text *redact.Stream, req *redactorv1.RedactStreamRequest) (*redactorv1.RedactStreamResponse, error) {
	if len(req.GetText()) > h.s.cfg.MaxBytes {
		return nil, fault.New(fault.PayloadTooLarge, "a piece of %d bytes, the limit is %d", len(req.GetText()), h.s.cfg.MaxBytes)
	}
	out, n := text.Write(req.GetText())
	if req.GetLast() {
		rest, more := text.Close()
		out, n = out+rest, n+more
	}
	return &redactorv1.RedactStreamResponse{Text: out, Count: int32(n)}, nil //nolint:gosec // G115: fewer than bytes
}

// Register adds secrets to a run or a tenant.
func (h handler) Register(_ context.Context, req *redactorv1.RegisterRequest) (*redactorv1.RegisterResponse, error) {
	at, err := parseScope(req.GetScope())
	if err != nil {
		return nil, err
	}
	list := make([]redact.Secret, 0, len(req.GetSecrets()))
	for _, s := range req.GetSecrets() {
		list = append(list, redact.Secret{ID: s.GetId(), Value: redact.Value(s.GetValue())})
	}
	registration, err := h.s.registry.Register(at, list)
	if err != nil {
		return nil, err
	}
	return &redactorv1.RegisterResponse{Registration: registration}, nil
}

// Forget removes the secrets of a run.
func (h handler) Forget(_ context.Context, req *redactorv1.ForgetRequest) (*redactorv1.ForgetResponse, error) {
	at, err := parseScope(req.GetScope())
	if err != nil {
		return nil, err
	}
	if at.Run == "" {
		return nil, fault.New(fault.ValidationError, "scope.run_id: must not be empty; the secrets of a tenant are kept")
	}
	h.s.registry.Forget(at)
	return &redactorv1.ForgetResponse{}, nil
}
