package provider

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Codes of a failed call (OpenWOP envelope contract §22 "Failure names",
// OpenWOP host contract §9.3).
const (
	// CodeUnavailable means that the server was unreachable, failed, or ended the connection early.
	CodeUnavailable = "provider_unavailable"
	// CodeQuota means that the account's rate or quota is used up.
	CodeQuota = "provider_quota_exhausted"
	// CodeModelNotSupported means that the provider does not have the model.
	CodeModelNotSupported = "model_not_supported"
	// CodeSchemaInvalid means that the provider does not support the response schema.
	CodeSchemaInvalid = "response_schema_invalid"
	// CodeContentTooLong means that the prompt or the answer exceeds a limit.
	CodeContentTooLong = "content_too_long"
	// CodeCredentialRequired means that the key is missing or was rejected.
	CodeCredentialRequired = "credential_required"
	// CodeUnsupportedModality means that the provider does not accept this content (OpenWOP host
	// contract §9.3).
	CodeUnsupportedModality = "unsupported_modality"
	// CodeCredentialForbidden means that the provider accepts no key of a tenant (OpenWOP host contract
	// §9.3).
	CodeCredentialForbidden = "credential_forbidden"
	// CodeInvalidRequest means that the request itself is wrong: the server rejects it, or would.
	CodeInvalidRequest = "provider_request_invalid"
)

// Error is a call without an answer. Its message can be recorded: it contains no vendor body, key,
// address with credentials, or prompt text.
type Error struct {
	Code    string
	Message string
	// Retryable means that the same call may succeed later.
	Retryable bool
	// Capacity means that the vendor has no capacity at the moment or is unreachable: a rate limit,
	// an overload, a refused connection. The caller waits and calls again without using a retry. It
	// implies Retryable.
	Capacity bool
	// Status is the HTTP status of the vendor's response; 0 without one.
	Status int
	// Quote is the server's own message; see the function Quote. It may repeat the prompt, so it is
	// redacted before it is recorded, and not logged.
	Quote string
	// RetryAfter is the wait requested by the vendor; 0 for none.
	RetryAfter time.Duration
	// Cause is for errors.Is; its text must not be shown.
	Cause error
}

// Error returns code and message, without the cause.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// As returns the *Error in err's chain.
func As(err error) (*Error, bool) { return errors.AsType[*Error](err) }

// maxQuote limits a server's message that is repeated, in bytes.
const maxQuote = 2 << 10

// Quote returns a server's message for Error.Quote, without the key of the call. A longer message is a
// page or an echo of the prompt: it is left out as a whole, since a secret that is cut would not be
// redacted. So is one that repeats the headers that were to be signed.
func Quote(message string, key Secret) string {
	if len(message) > maxQuote || strings.Contains(strings.ToLower(message), "canonical string") {
		return ""
	}
	if key != "" {
		message = strings.ReplaceAll(message, string(key), "[REDACTED]")
	}
	return strings.TrimSpace(strings.ToValidUTF8(message, ""))
}
