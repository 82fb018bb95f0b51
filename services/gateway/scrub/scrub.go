// Package scrub takes secrets out of errors before they leave, and out of what test
// seams answer. An error names what
// is wrong and where, and so repeats names that the caller wrote: of members, runs,
// workflows. None of them may be a secret of the host (OpenWOP envelope contract
// §11, sinks; host contract §2.0, leakage).
package scrub

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/grpc"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// Errors scrubs errors. It is safe for concurrent use.
type Errors struct{ Redactor redactorv1.RedactorClient }

const (
	// timeout bounds one call: an error should not keep its caller waiting.
	timeout = 2 * time.Second
	// nobody is the scope of callers who are not known.
	nobody = "nobody"
)

// Clean gives the error as it may be shown. Without the redactor only the code is
// left. Errors that are no faults are hidden elsewhere.
func (s *Errors) Clean(ctx context.Context, err error) error {
	f, ok := fault.As(err)
	if !ok {
		return err
	}
	if ctx.Err() != nil { // whoever asked has gone; nobody reads it
		return fault.New(f.Code, "").After(f.RetryAfter).Wrap(err)
	}
	details, merr := json.Marshal(f.Details)
	if merr != nil {
		details = []byte("null")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	res, rerr := s.Redactor.Redact(ctx, &redactorv1.RedactRequest{
		Scope: &redactorv1.Scope{Tenant: tenantOf(ctx)}, Texts: []string{f.Message}, Documents: [][]byte{details},
	})
	switch {
	case rerr != nil || len(res.GetTexts()) != 1 || len(res.GetDocuments()) != 1:
		return fault.New(f.Code, "what is wrong cannot be told at the moment: the redactor cannot be reached").After(f.RetryAfter).Wrap(err)
	case res.GetCount() == 0:
		return err
	}
	out := fault.New(f.Code, "%s", res.GetTexts()[0]).After(f.RetryAfter)
	var clean map[string]any
	if json.Unmarshal(res.GetDocuments()[0], &clean) == nil {
		out.Details = clean
	}
	return out
}

// Document gives a document as it may be shown: without secrets. An error is fit for
// the caller.
func (s *Errors) Document(ctx context.Context, doc []byte) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	res, err := s.Redactor.Redact(ctx, &redactorv1.RedactRequest{Scope: &redactorv1.Scope{Tenant: tenantOf(ctx)}, Documents: [][]byte{doc}})
	if err != nil || len(res.GetDocuments()) != 1 {
		return nil, fault.New(fault.ServiceUnavailable, "the redactor cannot be reached, and nothing is shown without it; try again").
			After(time.Second).Wrap(err)
	}
	return res.GetDocuments()[0], nil
}

func tenantOf(ctx context.Context) string {
	if p := auth.From(ctx); p != nil {
		return p.Tenant
	}
	return nobody
}

// Unary cleans the errors of calls.
func (s *Errors) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	res, err := next(ctx, req)
	if err != nil {
		return nil, s.Clean(ctx, err)
	}
	return res, nil
}

// Stream cleans the errors of streams.
func (s *Errors) Stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := next(srv, ss); err != nil {
		return s.Clean(ss.Context(), err)
	}
	return nil
}
