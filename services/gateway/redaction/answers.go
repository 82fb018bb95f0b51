// Package redaction removes secrets from what the gateway returns and stores: errors,
// answers of test seams, texts of callers, and debug bundles. It calls the redactor, or the
// dispatcher if only the dispatcher has the secrets that a run uses.
//
// Without the redactor nothing is returned or stored unredacted: an error keeps its code
// only, everything else fails with fault.ServiceUnavailable.
package redaction

import (
	"context"
	"encoding/json"
	"time"

	"google.golang.org/grpc"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/auth"
)

// AnswerRedactor redacts answers before they leave the host: errors, and documents of test
// seams. An error message repeats names
// that the caller wrote, of members, runs and workflows, and such a name may be a secret of
// the host (OpenWOP envelope contract §11, sinks; host contract §2.0, leakage). It is safe
// for concurrent use.
type AnswerRedactor struct{ Redactor redactorv1.RedactorClient }

const (
	// timeout limits one call, so that a slow redactor does not delay answers for long.
	timeout = 2 * time.Second
	// anonymousTenant is the redaction scope of callers without a principal.
	anonymousTenant = "nobody"
)

// Unavailable is the error of an operation that did not happen because redaction failed;
// outcome says so, such as "the webhook was not stored".
func Unavailable(outcome string, cause error) error {
	return fault.New(fault.ServiceUnavailable, "the redactor is unavailable, so %s; retry", outcome).After(time.Second).Wrap(cause)
}

// RedactError returns a fault with its message and details redacted. If the redactor is
// unavailable, only the code is kept. Errors that are not faults are returned unchanged;
// the transport masks them.
func (r *AnswerRedactor) RedactError(ctx context.Context, err error) error {
	f, ok := fault.As(err)
	if !ok {
		return err
	}
	if ctx.Err() != nil { // the caller has gone and reads no message
		return fault.New(f.Code, "").After(f.RetryAfter).Wrap(err)
	}
	details, merr := json.Marshal(f.Details)
	if merr != nil {
		details = []byte("null")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	res, rerr := r.Redactor.Redact(ctx, &redactorv1.RedactRequest{
		Scope: &redactorv1.Scope{Tenant: tenantOf(ctx)}, Texts: []string{f.Message}, Documents: [][]byte{details},
	})
	switch {
	case rerr != nil || len(res.GetTexts()) != 1 || len(res.GetDocuments()) != 1:
		return fault.New(f.Code, "error details withheld: the redactor is unavailable").After(f.RetryAfter).Wrap(err)
	case res.GetCount() == 0:
		return err
	}
	out := fault.New(f.Code, "%s", res.GetTexts()[0]).After(f.RetryAfter)
	var redacted map[string]any
	if json.Unmarshal(res.GetDocuments()[0], &redacted) == nil {
		out.Details = redacted
	}
	return out
}

// RedactDocument removes secrets from a JSON document before it is returned to the caller.
func (r *AnswerRedactor) RedactDocument(ctx context.Context, doc []byte) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	res, err := r.Redactor.Redact(ctx, &redactorv1.RedactRequest{
		Scope:     &redactorv1.Scope{Tenant: tenantOf(ctx)},
		Documents: [][]byte{doc},
	})
	if err != nil || len(res.GetDocuments()) != 1 {
		return nil, Unavailable("the answer was withheld", err)
	}
	return res.GetDocuments()[0], nil
}

func tenantOf(ctx context.Context) string {
	if p := auth.From(ctx); p != nil {
		return p.Tenant
	}
	return anonymousTenant
}

// Unary redacts the errors of unary calls.
func (r *AnswerRedactor) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	res, err := next(ctx, req)
	if err != nil {
		return nil, r.RedactError(ctx, err)
	}
	return res, nil
}

// Stream redacts the errors of streams.
func (r *AnswerRedactor) Stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := next(srv, ss); err != nil {
		return r.RedactError(ss.Context(), err)
	}
	return nil
}
