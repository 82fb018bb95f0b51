package deliver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"waybill.dev/waybill/services/gateway/egress"
)

// Result is how an attempt went.
type Result struct {
	// Reason says in a few words why it failed; empty: it was taken. It repeats nothing
	// that the receiver said.
	Reason string
	// Refused says that it was not sent: the URL must not be called.
	Refused bool
	// After is how long the receiver asks to be left alone; 0: it does not say.
	After time.Duration
}

// Poster sends one request.
type Poster interface {
	Post(ctx context.Context, url string, header http.Header, body []byte) Result
}

// HTTP sends requests through a guarded client.
type HTTP struct {
	Client *http.Client
	// Policy judges a URL's text once more: it may have been given under another one.
	Policy egress.Policy
}

// maxAnswer bounds what is read of an answer, so that its connection can be used again.
const maxAnswer = 64 << 10

// Post sends a request; see Poster. 2xx is success, a redirect is not followed.
func (p HTTP) Post(ctx context.Context, url string, header http.Header, body []byte) Result {
	if _, err := p.Policy.CheckURL(url); errors.Is(err, egress.ErrRefused) {
		return Result{Reason: "refused: " + err.Error(), Refused: true}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Result{Reason: "the URL cannot be called"}
	}
	req.Header, req.GetBody = header, nil
	res, err := p.Client.Do(req)
	if err != nil {
		return Result{Reason: reason(err), Refused: errors.Is(err, egress.ErrRefused)}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // what it says is of no interest
	_ = res.Body.Close()
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return Result{}
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return Result{Reason: "redirected, status " + strconv.Itoa(res.StatusCode)}
	}
	return Result{Reason: "status " + strconv.Itoa(res.StatusCode), After: retryAfter(res)}
}

// maxRetryAfter bounds what a receiver may ask for.
const maxRetryAfter = time.Hour

// retryAfter is how long a receiver that is busy wants to be left alone.
func retryAfter(res *http.Response) time.Duration {
	if res.StatusCode != http.StatusTooManyRequests && res.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	s, err := strconv.Atoi(res.Header.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return min(time.Duration(min(s, int(maxRetryAfter/time.Second)))*time.Second, maxRetryAfter)
}

// reason puts an error into words that tell nothing of addresses or of the URL.
func reason(err error) string {
	refused, isRefused := errors.AsType[*egress.RefusedError](err)
	_, isTLS := errors.AsType[*tls.CertificateVerificationError](err)
	_, isRecord := errors.AsType[tls.RecordHeaderError](err)
	_, isAlert := errors.AsType[tls.AlertError](err)
	netErr, isNet := errors.AsType[net.Error](err)
	switch {
	case isRefused:
		return "refused: " + refused.Reason
	case errors.Is(err, egress.ErrUnresolved):
		return "the host has no address"
	case isNet && netErr.Timeout() || errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case isTLS || isRecord || isAlert || errors.Is(err, http.ErrSchemeMismatch):
		return "no trusted TLS connection"
	default:
		return "the connection failed"
	}
}
