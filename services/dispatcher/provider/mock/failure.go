package mock

import (
	"context"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// failure is a provider that always returns an error.
type failure struct {
	after time.Duration
	err   provider.Error
}

func newFailure(m *members) provider.Provider {
	return &failure{after: m.millis("failAfterMs"), err: provider.Error{
		Code: m.required("code"), Message: m.required("message"), Retryable: m.boolean("retryable"),
	}}
}

func (f *failure) ID() string { return ID }

func (f *failure) Call(ctx context.Context, _ provider.Request, _ func(provider.Delta) error) (provider.Result, error) {
	if err := provider.Pause(ctx, f.after); err != nil {
		return provider.Result{}, err
	}
	e := f.err // a copy: callers may keep it
	return provider.Result{}, &e
}
