package outbound

import (
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// NewTransportError returns the error of a call without a complete answer.
func NewTransportError(err error) *provider.Error {
	e := &provider.Error{Code: provider.CodeUnavailable, Retryable: true, Cause: withoutURL(err)}
	limit, limited := errors.AsType[*LimitError](err)
	switch {
	case errors.Is(err, ErrTooLong):
		e.Code, e.Message, e.Retryable = provider.CodeContentTooLong, "a single event of the model's server is longer than 16 MiB", false
	case errors.Is(err, ErrRedirect):
		e.Message, e.Retryable = "the model's server redirects to another address; configure that one if it is meant", false
	case errors.Is(err, ErrNoStream), errors.Is(err, ErrNoContent):
		e.Message, e.Retryable = "what answers at the model's address does not stream answers of its API; check the address", false
	case limited:
		e.Message, e.Capacity = limit.Error(), limit.Limit == LimitConnect
	case isUnreachable(err):
		e.Message, e.Capacity = "the model's server could not be reached, or closed the connection before it answered", true
	default:
		e.Message = "the model's server could not be reached, or ended its answer early"
	}
	return e
}

// ErrUnanswered marks a call whose connection ended before the first byte of an answer.
var ErrUnanswered = errors.New("no byte of an answer")

// isUnreachable reports temporary failures before the first byte of an answer: a refused or reset
// connection, or an unavailable network or resolver. Unknown names and invalid certificates are
// configuration mistakes.
func isUnreachable(err error) bool {
	if !errors.Is(err, ErrUnanswered) {
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return !dns.IsNotFound
	}
	for _, passing := range []error{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
		syscall.EHOSTUNREACH, syscall.ENETUNREACH, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Timeout()
}

// IsOverloaded reports the statuses of servers without capacity: rate limit (429), unavailable
// (503), or overloaded (529).
func IsOverloaded(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == statusOverloaded
}

// statusOverloaded is used by Anthropic and by servers that follow it.
const statusOverloaded = 529

// withoutURL removes the address, which url.Error repeats.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// maxRetryAfter limits the wait accepted from a server.
const maxRetryAfter = 24 * time.Hour

// RetryAfter reads Retry-After: seconds, or a date, which is compared with the server's own Date so
// that clocks need not agree. It returns 0 without a usable value.
//
// Retry-After-Ms, sent by some vendors, is more precise and takes precedence.
func RetryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && !math.IsInf(ms, 0) {
		return time.Duration(min(ms, float64(maxRetryAfter.Milliseconds())) * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s >= 0 && !math.IsInf(s, 0) {
		return time.Duration(min(s, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	until, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(until.Sub(now), 0), maxRetryAfter)
}
