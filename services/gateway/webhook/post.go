package webhook

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

// Result is the outcome of a delivery attempt.
type Result struct {
	// Reason is why the attempt failed, in short; empty means success. It repeats nothing of
	// the receiver's response.
	Reason string
	// Refused means that the request was not sent, because the URL must not be called.
	Refused bool
	// After is the wait the receiver requested with Retry-After; 0 means none.
	After time.Duration
}

// Poster sends one request.
type Poster interface {
	Post(ctx context.Context, url string, header http.Header, body []byte) Result
}

// HTTP sends requests through a guarded client.
type HTTP struct {
	Client *http.Client
	// Policy validates the URL again: the operator may have changed the policy since.
	Policy egress.Policy
}

// maxAnswer limits how much of a response body is read. Reading it to its end allows the
// connection to be reused.
const maxAnswer = 64 << 10

// Post sends a request; see Poster. A 2xx status is success. Redirects are not followed.
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
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // the body is ignored
	_ = res.Body.Close()
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return Result{}
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return Result{Reason: "redirected, status " + strconv.Itoa(res.StatusCode)}
	}
	return Result{Reason: "status " + strconv.Itoa(res.StatusCode), After: retryAfter(res)}
}

// maxRetryAfter limits the wait that a receiver may request.
const maxRetryAfter = time.Hour

// retryAfter returns the wait that a busy receiver requested.
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

// reason describes an error without naming addresses or the URL.
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
