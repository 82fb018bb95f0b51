package model

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// timeouts returns the time limits of the node's calls: its own, else the provider's, else the
// defaults. A node can raise them up to the operator's maximum.
func (l *Loop) timeouts(cfg config, id string) (provider.Timeouts, *wire.NodeError) {
	s := l.cfg.Providers.For(id)
	if name, value := cfg.Timeouts.Check(s.MaxTimeout()); name != "" {
		return provider.Timeouts{}, node.Invalid("/config/timeouts/%s: %d; want milliseconds from 1 to %d, "+
			"the host's maximum for provider %q (maxTimeoutMs in --provider-settings)",
			name, value, s.MaxTimeout().Milliseconds(), id)
	}
	t := cfg.Timeouts.Timeouts().Or(s.Millis.Timeouts()).Or(provider.Timeouts{Call: l.cfg.Timeout})
	return t.Or(provider.DefaultTimeouts()), nil
}

// timeoutMessage describes a call that exceeded the time limit of the whole call.
func timeoutMessage(t provider.Timeouts) string {
	return fmt.Sprintf("the model did not end its answer in time (limit call: %s); "+
		"raise timeouts.callMs of the provider in --provider-settings, or in the node's config", t.Call)
}

// unreported leaves the limiter's estimate of a call's tokens as it is.
const unreported = -1

// acquireSlot waits until the provider has room for the call. The wait counts against the run's
// time, not against the time limits of the call. It ends when this process may begin no further call.
// Errors: the cause of that, or of ctx; a *provider.Error if the provider refuses calls for longer
// than a call waits here.
func (e *emission) acquireSlot(ctx context.Context, req provider.Request) (release func(limit.Outcome), err error) {
	if e.deps.Limiter == nil {
		return func(limit.Outcome) {}, nil
	}
	waiting, cancel := callguard.Waiting(ctx)
	defer cancel()
	slot, err := e.deps.Limiter.Acquire(waiting, limit.Call{
		Provider:   req.Provider,
		Tenant:     e.task.Tenant,
		Model:      req.Model,
		Credential: req.Credential,
		Tokens:     estimate(req),
	})
	if held, ok := errors.AsType[*limit.HeldError](err); ok {
		return nil, &provider.Error{
			Code: held.Code, Message: held.Error(), Retryable: true, Capacity: true, RetryAfter: held.Left,
		}
	}
	if err != nil {
		return nil, context.Cause(waiting)
	}
	return slot.Release, nil
}

// limiterOutcome converts the end of a call for the limiter.
func (e *emission) limiterOutcome(ctx context.Context, res provider.Result, err error) limit.Outcome {
	out := limit.Outcome{Tokens: usedTokens(res, err), Aborted: ctx.Err() != nil}
	pe, failed := provider.As(err)
	if out.Failed = pe; failed && pe.Capacity {
		out.Refused = pe
		if e.deps.OnRefused != nil {
			e.deps.OnRefused(e.request.Provider)
		}
	}
	return out
}

const (
	// bytesPerToken is the usual ratio of English text.
	bytesPerToken = 4
	// mediaTokens is the estimate for an image, a sound or a file.
	mediaTokens = 1000
)

// estimate returns an upper estimate of a call's tokens: its prompt plus the maximum answer.
func estimate(req provider.Request) int {
	n := (len(req.System) + len(req.Schema)) / bytesPerToken
	for _, m := range req.Messages {
		if len(m.Content) > 0 && m.Content[0] == '"' {
			n += len(m.Content) / bytesPerToken
			continue
		}
		parts, err := m.Parts()
		if err != nil { // the adapter rejects it
			continue
		}
		for _, p := range parts {
			if p.Kind == provider.PartText {
				n += len(p.Text) / bytesPerToken
			} else {
				n += mediaTokens
			}
		}
	}
	return n + req.MaxTokens
}

// usedTokens returns the tokens that a call used, or unreported.
func usedTokens(res provider.Result, err error) int {
	if pe, ok := provider.As(err); ok && (pe.Capacity || pe.Code == provider.CodeSchemaInvalid) {
		return 0
	}
	if err != nil || !res.Usage.Known {
		return unreported
	}
	n := res.Usage.InputTokens + res.Usage.OutputTokens
	if res.Usage.CacheApart {
		n += res.Usage.CacheWriteTokens
	}
	return n
}
