package provider

import (
	"errors"
	"fmt"
	"time"
)

// Codes of a failed call (OpenWOP envelope contract §22 "Failure names",
// OpenWOP host contract §9.3).
const (
	// CodeUnavailable: the server was not reached, failed, or broke off.
	CodeUnavailable = "provider_unavailable"
	// CodeQuota: the account's rate or quota is used up.
	CodeQuota = "provider_quota_exhausted"
	// CodeModelNotSupported: the provider does not have the model.
	CodeModelNotSupported = "model_not_supported"
	// CodeSchemaInvalid: the provider cannot work with the response schema.
	CodeSchemaInvalid = "response_schema_invalid"
	// CodeContentTooLong: the prompt or the answer is larger than allowed.
	CodeContentTooLong = "content_too_long"
	// CodeCredentialRequired: the key is missing or was not accepted.
	CodeCredentialRequired = "credential_required"
	// CodeUnsupportedModality: the provider takes no such content (OpenWOP host
	// contract §9.3).
	CodeUnsupportedModality = "unsupported_modality"
	// CodeInvalidRequest: the request itself is wrong.
	CodeInvalidRequest = "validation_error"
)

// Error is a call that gave no answer. Its message is fit for a run's log: it
// holds no vendor body, key, address with credentials, or prompt text.
type Error struct {
	Code    string
	Message string
	// Retryable says that the same call may succeed later.
	Retryable bool
	// Capacity says that the vendor has no room for the call at the moment, or cannot be
	// reached: a rate limit, an overload, a refused connection. The caller waits and asks
	// again without using up a retry. It implies Retryable.
	Capacity bool
	// Status is the HTTP status of the vendor's answer, 0 without one.
	Status int
	// RetryAfter is how long the vendor asks to wait, 0 if it did not say.
	RetryAfter time.Duration
	// Cause is for errors.Is; its text is not fit for anybody's eyes.
	Cause error
}

// Error gives code and message, without the cause.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// As finds the *Error in err's chain.
func As(err error) (*Error, bool) { return errors.AsType[*Error](err) }
