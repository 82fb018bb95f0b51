// Package outbound is how adapters reach their vendor's servers: one client that
// streams, follows nobody, and gives up on silence; and what its failures mean.
package outbound

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"time"

	"waybill.dev/waybill/services/dispatcher/seal"
)

// Ends of a call that the HTTP client itself brings about.
var (
	ErrRedirect  = errors.New("the server redirects")
	ErrNoStream  = errors.New("the server does not stream events")
	ErrSilent    = errors.New("the server kept silent for too long")
	ErrNoContent = errors.New("the server answered without a body")
	ErrTooLong   = errors.New("the server sent an event that is too long")
)

// NewClient is a client that keeps connections, follows no redirect, and gives a
// server up that keeps silent for longer than the timeout.
func NewClient(timeout time.Duration) *http.Client {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		// No Proxy: the operator names the server, and what HTTP_PROXY says is meant
		// for browsers.
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		MaxIdleConns: 128, MaxIdleConnsPerHost: 128, IdleConnTimeout: 90 * time.Second,
		ResponseHeaderTimeout: timeout,
	}
	return &http.Client{
		Transport: watch{RoundTripper: t, timeout: timeout},
		// A redirect would carry key and prompt to an address nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return ErrRedirect },
	}
}

// watch is a transport that also looks at how the body arrives.
type watch struct {
	http.RoundTripper
	timeout time.Duration
}

// CloseIdleConnections is found by http.Client's method of that name.
func (w watch) CloseIdleConnections() {
	if c, ok := w.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip asks; the body of an answer is bounded in size if it is an error's,
// and in silence if it is a stream.
func (w watch) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := seal.Check(r.Context()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	res, err := w.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	body := &watchedBody{ReadCloser: res.Body, left: -1, silence: w.timeout, ctx: ctx, cancel: cancel}
	res.Body = body
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		const enough = 64 << 10 // an error says what is wrong in less
		body.left = enough
	case res.StatusCode == http.StatusNoContent:
		return nil, errors.Join(ErrNoContent, body.Close())
	case !isStream(res):
		return nil, errors.Join(ErrNoStream, body.Close())
	default:
		res.Body = &events{ReadCloser: body}
	}
	return res, nil
}

func isStream(res *http.Response) bool {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// watchedBody is a body that ends a silence.
type watchedBody struct {
	io.ReadCloser
	left    int // bytes that may be read; negative for any number
	silence time.Duration
	ctx     context.Context //nolint:containedctx // the request's own; the body lives as long
	cancel  context.CancelCauseFunc
}

// Read fails with ErrSilent when nothing arrives for too long.
func (b *watchedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if b.left > 0 {
		p = p[:min(len(p), b.left)]
	}
	timer := time.AfterFunc(b.silence, func() { b.cancel(ErrSilent) })
	n, err := b.ReadCloser.Read(p)
	timer.Stop()
	if b.left > 0 {
		b.left -= n
	}
	if err != nil && errors.Is(context.Cause(b.ctx), ErrSilent) {
		return n, ErrSilent
	}
	return n, err
}

// Close ends the request.
func (b *watchedBody) Close() error {
	b.cancel(nil)
	return b.ReadCloser.Close()
}
