package model

import (
	"context"
	"errors"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// callFailure returns the node error of a call without an answer. It names the provider, and repeats
// the message of its server, unless the provider is withheld from the tenant's readers. If the
// provider had no capacity, it contains the pause before the next call.
func (e *emission) callFailure(err error) *wire.NodeError {
	out := callError(err)
	out.Retries = e.cfg.Providers.For(e.request.Provider).Retries
	if callsNext(out) {
		if out.Next = e.nextModel(e.logNext); out.Next != nil {
			out.Capacity = false // another model is called instead of a wait
		}
	}
	switch {
	case out.Capacity:
		out.RetryAfter = e.retryPause(out.RetryAfter)
	case errors.Is(err, context.DeadlineExceeded):
		out.Message = timeoutMessage(e.request.Timeouts)
	}
	if !e.task.withholdsModel() {
		out.Details = map[string]any{"provider": e.request.Provider}
		if pe, ok := provider.As(err); ok && pe.Quote != "" { // redacted with the event
			out.Message += `; the server says: "` + pe.Quote + `"`
		}
	}
	return out
}

func callError(err error) *wire.NodeError {
	if pe, ok := errors.AsType[*provider.Error](err); ok {
		return &wire.NodeError{
			Code:       pe.Code,
			Message:    pe.Message,
			Retryable:  pe.Retryable,
			RetryAfter: pe.RetryAfter,
			Capacity:   pe.Capacity,
		}
	}
	return &wire.NodeError{
		Code: string(fault.ProviderUnavailable), Message: "the model could not be asked", Retryable: true,
	}
}
