package acceptor

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/seam"
)

const (
	// redactTimeout bounds one call. A redactor that does not answer is as good
	// as none: nothing is recorded.
	redactTimeout = 10 * time.Second
	// retryAfter is what a caller waits before it tries again.
	retryAfter = time.Second
)

// redactorClient is the redactor service the way the pipeline sees it.
type redactorClient struct{ client redactorv1.RedactorClient }

// Redact scrubs in the scope of a run.
func (r redactorClient) Redact(ctx context.Context, run subject.Run, in accept.Texts) (accept.Texts, int, error) {
	ctx, cancel := context.WithTimeout(ctx, redactTimeout)
	defer cancel()
	req := &redactorv1.RedactRequest{Scope: scopeOf(run), Texts: in.Strings}
	req.Scope.RequireRegistered, req.Scope.RequireTenantRegistered = in.Registration.Run, in.Registration.Tenant
	req.Scope.Registrations = in.Registration.Told
	for _, d := range in.Documents {
		req.Documents = append(req.Documents, d)
	}
	resp, err := r.client.Redact(ctx, req)
	if err != nil {
		return accept.Texts{}, 0, unreachable(ctx, err)
	}
	out := accept.Texts{Strings: resp.GetTexts()}
	for _, d := range resp.GetDocuments() {
		out.Documents = append(out.Documents, json.RawMessage(d))
	}
	return out, int(resp.GetCount()), nil
}

// Texts scrubs plain texts in the scope of a run; see opened.Redactor.
func (r redactorClient) Texts(ctx context.Context, run subject.Run, needs wire.Registration, texts []string) ([]string, error) {
	out, _, err := r.Redact(ctx, run, accept.Texts{Strings: texts, Registration: needs})
	if err != nil {
		return nil, err
	}
	if len(out.Strings) != len(texts) {
		return nil, fault.New(fault.ServiceUnavailable, "the redactor answered with another number of texts")
	}
	return out.Strings, nil
}

// Open registers canaries in a scope of their own.
func (r redactorClient) Open(ctx context.Context, tenant string, canaries []seam.Canary) (seam.Scope, func(), error) {
	run := subject.Run{Tenant: tenant, RunID: "seam-" + rand.Text()}
	req := &redactorv1.RegisterRequest{Scope: scopeOf(run)}
	for _, c := range canaries {
		req.Secrets = append(req.Secrets, &redactorv1.Secret{Id: c.SecretID, Value: c.Value})
	}
	ctx, cancel := context.WithTimeout(ctx, redactTimeout)
	defer cancel()
	resp, err := r.client.Register(ctx, req)
	if err != nil {
		if f, ok := fault.As(err); ok && f.Code == fault.ValidationError {
			return seam.Scope{}, nil, fault.New(fault.InvalidArgument, "byokCanaries: %s", f.Message)
		}
		return seam.Scope{}, nil, unreachable(ctx, err)
	}
	return seam.Scope{Run: run, Told: []string{resp.GetRegistration()}}, func() {
		// Also when the request has been cancelled: the canaries must go.
		_ = r.Forget(context.WithoutCancel(ctx), run)
	}, nil
}

// Forget drops what was registered for a run; see opened.Redactor.
func (r redactorClient) Forget(ctx context.Context, run subject.Run) error {
	ctx, cancel := context.WithTimeout(ctx, redactTimeout)
	defer cancel()
	if _, err := r.client.Forget(ctx, &redactorv1.ForgetRequest{Scope: scopeOf(run)}); err != nil {
		return unreachable(ctx, err)
	}
	return nil
}

func scopeOf(run subject.Run) *redactorv1.Scope {
	return &redactorv1.Scope{Tenant: run.Tenant, RunId: run.RunID}
}

// unreachable turns whatever went wrong at the redactor into a fault that may
// be tried again: fail closed, nothing recorded, the envelope not judged
// (OpenWOP envelope contract §6 step 7, §26 case 12).
func unreachable(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return err // the caller has gone
	}
	if who := missing(err); who != nil {
		return fault.New(fault.ServiceUnavailable, "the redactor does not know the secrets of the %s, and nothing was recorded; "+
			"register them, or that there are none, with waybill.redactor.v1.Redactor/Register, then try again with what it answers in registrations", strings.Join(who, " and the ")).
			With("unregistered", who).After(retryAfter).Wrap(err)
	}
	if f, ok := fault.As(err); ok && f.Code == fault.PayloadTooLarge {
		return f // to try again does not help
	}
	return fault.New(fault.ServiceUnavailable, "the redactor cannot be reached; nothing was recorded, try again").
		After(retryAfter).Wrap(err)
}

// missing names those whose secrets the redactor does not know, run or tenant; nil:
// the error is about something else.
func missing(err error) []string {
	f, ok := fault.As(err)
	if !ok {
		return nil
	}
	switch who := f.Details["unregistered"].(type) {
	case []string:
		return who
	case []any: // as it comes from another process
		names := make([]string, 0, len(who))
		for _, w := range who {
			names = append(names, fmt.Sprint(w))
		}
		return names
	}
	return nil
}
