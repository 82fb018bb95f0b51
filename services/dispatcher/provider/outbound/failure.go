package outbound

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

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
	case errors.Is(err, ErrEncoding):
		e.Message, e.Retryable = "the model's server compresses its answers in a form that the host did not ask for; turn that off", false
	case errors.Is(err, ErrProxyAuth):
		e.Message, e.Retryable = "the proxy before the model's server wants a user and a password; set them in HTTPS_PROXY or HTTP_PROXY", false
	case errors.Is(err, ErrNoStream), errors.Is(err, ErrNoContent):
		e.Message, e.Retryable = "what answers at the model's address does not stream answers of its API; check the address", false
	case limited:
		e.Message, e.Capacity = limit.Error(), limit.Limit == LimitConnect
	case errors.Is(err, ErrUnanswered):
		e.Message, e.Capacity = unansweredMessage(err), isUnreachable(err)
	case err == nil:
		e.Message = "the model's server ended its answer before it was complete"
	case isGarbage(err):
		e.Message = "the model's server sent something that is no part of an answer of its API"
	default:
		e.Message = "the connection to the model's server broke before the answer was complete"
	}
	return e
}

// unansweredMessage describes a call without a byte of an answer.
func unansweredMessage(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return "the model's server could not be reached: its name is unknown; check the provider's address"
	}
	if isCertificate(err) {
		return "the model's server could not be reached: its certificate is not valid for this host"
	}
	for _, closed := range []error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, closed) {
			return "the model's server closed the connection before it answered"
		}
	}
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return "the model's server could not be reached"
	}
	return "what answers at the model's address speaks no HTTP, or not as the address says; check the address"
}

// isCertificate reports a certificate that the host does not trust.
func isCertificate(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// ErrGarbage marks an answer that is not part of the server's API.
var ErrGarbage = errors.New("an event that is no answer")

// isGarbage reports an answer that cannot be read.
func isGarbage(err error) bool {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return true
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return true
	}
	return errors.Is(err, ErrGarbage)
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
