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
	// redactTimeout limits one call. After it the redactor counts as unreachable, and
	// nothing is recorded.
	redactTimeout = 10 * time.Second
	// retryAfter is the Retry-After of errors that a later try can fix.
	retryAfter = time.Second
)

// redactorClient is a client of the redactor service. It implements accept.Redactor,
// external.Redactor and seam.Canaries.
type redactorClient struct{ client redactorv1.RedactorClient }

// Redact redacts in the scope of a run; see accept.Redactor.
func (r redactorClient) Redact(ctx context.Context, run subject.Run, in accept.Texts) (accept.Texts, int, error) {
	ctx, cancel := context.WithTimeout(ctx, redactTimeout)
	defer cancel()
	req := &redactorv1.RedactRequest{Scope: protoScope(run), Texts: in.Strings}
	req.Scope.RequireRegistered, req.Scope.RequireTenantRegistered = in.Registration.Run, in.Registration.Tenant
	req.Scope.Registrations = in.Registration.Told
	for _, d := range in.Documents {
		req.Documents = append(req.Documents, d)
	}
	resp, err := r.client.Redact(ctx, req)
	if err != nil {
		return accept.Texts{}, 0, redactorFault(ctx, err)
	}
	out := accept.Texts{Strings: resp.GetTexts()}
	for _, d := range resp.GetDocuments() {
		out.Documents = append(out.Documents, json.RawMessage(d))
	}
	return out, int(resp.GetCount()), nil
}

// Texts redacts plain texts in the scope of a run; see external.Redactor.
func (r redactorClient) Texts(ctx context.Context, run subject.Run, needs wire.Registration, texts []string) ([]string, error) {
	out, _, err := r.Redact(ctx, run, accept.Texts{Strings: texts, Registration: needs})
	if err != nil {
		return nil, err
	}
	if len(out.Strings) != len(texts) {
		return nil, accept.ErrRedactorAnswer()
	}
	return out.Strings, nil
}

// RegisterCanaries registers canaries in a scope of their own; see seam.Canaries.
func (r redactorClient) RegisterCanaries(ctx context.Context, tenant string, canaries []seam.Canary) (seam.Scope, func(), error) {
	run := subject.Run{Tenant: tenant, RunID: "seam-" + rand.Text()}
	req := &redactorv1.RegisterRequest{Scope: protoScope(run)}
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
		return seam.Scope{}, nil, redactorFault(ctx, err)
	}
	return seam.Scope{Run: run, Registrations: []string{resp.GetRegistration()}}, func() {
		// Even if the request was cancelled.
		_ = r.Forget(context.WithoutCancel(ctx), run)
	}, nil
}

// Forget removes a run's registered secrets; see external.Redactor.
func (r redactorClient) Forget(ctx context.Context, run subject.Run) error {
	ctx, cancel := context.WithTimeout(ctx, redactTimeout)
	defer cancel()
	if _, err := r.client.Forget(ctx, &redactorv1.ForgetRequest{Scope: protoScope(run)}); err != nil {
		return redactorFault(ctx, err)
	}
	return nil
}

func protoScope(run subject.Run) *redactorv1.Scope {
	return &redactorv1.Scope{Tenant: run.Tenant, RunId: run.RunID}
}

// redactorFault turns an error of the redactor into a fault. Without the redactor
// nothing is recorded and the envelope is not validated; the caller may retry
// (OpenWOP envelope contract §6 step 7, §26 case 12).
func redactorFault(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return err // the caller has cancelled
	}
	if scopes := unregisteredScopes(err); scopes != nil {
		return fault.New(fault.ServiceUnavailable, "the secrets of the %s are not registered with the redactor; nothing was recorded; "+
			"register them (an empty list if there are none) with waybill.redactor.v1.Redactor/Register, "+
			"then try again with the returned registration in registrations", strings.Join(scopes, " and the ")).
			With("unregistered", scopes).After(retryAfter).Wrap(err)
	}
	if f, ok := fault.As(err); ok && f.Code == fault.PayloadTooLarge {
		return f // a retry cannot succeed
	}
	return fault.New(fault.ServiceUnavailable, "the redactor is unreachable; nothing was recorded; try again").
		After(retryAfter).Wrap(err)
}

// unregisteredScopes returns the scopes, run or tenant, whose secrets are not
// registered; nil if the error has another cause.
func unregisteredScopes(err error) []string {
	f, ok := fault.As(err)
	if !ok {
		return nil
	}
	switch scopes := f.Details["unregistered"].(type) {
	case []string:
		return scopes
	case []any: // decoded from another process
		names := make([]string, 0, len(scopes))
		for _, s := range scopes {
			names = append(names, fmt.Sprint(s))
		}
		return names
	}
	return nil
}
