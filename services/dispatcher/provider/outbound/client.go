// Package outbound is the HTTP client of the adapters. It streams, follows no redirect, enforces
// the time limits of a call and maps failures.
package outbound

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// Errors caused by the client's own restrictions.
var (
	ErrRedirect  = errors.New("the server redirects")
	ErrNoStream  = errors.New("the server does not stream events")
	ErrNoContent = errors.New("the server answered without a body")
	ErrTooLong   = errors.New("the server sent an event that is too long")
	ErrEncoding  = errors.New("the server compresses its answer unasked")
	ErrProxyAuth = errors.New("the proxy wants credentials")
)

// NewClient returns a client that keeps connections, follows no redirect, and ends calls that
// exceed a time limit: the request's (see Within), else the given one. It adds extras to each request.
//
// It uses the proxy of HTTPS_PROXY, HTTP_PROXY and NO_PROXY, which only the operator can set.
// HTTP/2 connections are probed, because a dead connection otherwise looks like a thinking model.
func NewClient(limits provider.Timeouts, extras Extras) *http.Client {
	dialer := net.Dialer{KeepAlive: 30 * time.Second}
	proxy := httpproxy.FromEnvironment().ProxyFunc()
	t := &http.Transport{
		Proxy:                  func(r *http.Request) (*url.URL, error) { return proxy(r.URL) },
		OnProxyConnectResponse: checkProxy,
		DialContext:            dialer.DialContext, ForceAttemptHTTP2: true,
		MaxIdleConns: 128, MaxIdleConnsPerHost: 128, IdleConnTimeout: 90 * time.Second,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	return &http.Client{
		Transport: transport{RoundTripper: t, limits: limits, extras: extras},
		// A redirect would send key and prompt to an address that is not configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return ErrRedirect },
	}
}

// checkProxy reports a proxy that refuses to connect without credentials.
func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusProxyAuthRequired {
		return ErrProxyAuth
	}
	return nil
}

// transport enforces the time limits and limits the body.
type transport struct {
	http.RoundTripper
	limits provider.Timeouts
	extras Extras
}

// CloseIdleConnections is called by the http.Client method of that name.
func (w transport) CloseIdleConnections() {
	if c, ok := w.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip sends a request. The body of an error is limited in size, the body of a stream in
// silence.
func (w transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := callguard.Check(r.Context()); err != nil {
		return nil, err
	}
	r, err := w.extras.add(r)
	if err != nil {
		return nil, err
	}
	r = withoutReplay(r)
	limits := timeoutsOf(r.Context()).Or(w.limits)
	ctx, cancel := context.WithCancelCause(r.Context())
	end := &deadline{cancel: cancel}
	end.start(LimitConnect, limits.Connect)
	res, err := w.RoundTripper.RoundTrip(r.WithContext(end.traceConnection(ctx, limits.FirstByte)))
	if err != nil {
		end.stop()
		err = errors.Join(ErrUnanswered, limitCause(ctx, err))
		cancel(nil)
		return nil, err
	}
	body := &watchedBody{ReadCloser: res.Body, left: -1, silence: limits.Silence, ctx: ctx, cancel: cancel, end: end}
	res.Body = body
	switch {
	case res.StatusCode == http.StatusProxyAuthRequired:
		return nil, errors.Join(ErrProxyAuth, body.Close())
	case res.StatusCode >= http.StatusBadRequest:
		const enough = 64 << 10 // enough for any error
		body.left = enough
	case res.StatusCode == http.StatusNoContent:
		return nil, errors.Join(ErrNoContent, body.Close())
	case res.StatusCode >= http.StatusMultipleChoices: // a redirect, which is not followed
	case isAmazonStream(res): // its frames have their own limits; the SDK decodes them
	case !isPlain(res):
		return nil, errors.Join(ErrEncoding, body.Close())
	case isMedia(res):
		return nil, errors.Join(ErrNoStream, body.Close())
	default:
		res.Body = newStream(decoded(res, body), IsEventStream(res))
	}
	return res, nil
}

// decodedBody is a body in UTF-8.
type decodedBody struct {
	io.Reader
	io.Closer
}

// decoded returns a body in UTF-8, if the response names another character set that is known.
func decoded(res *http.Response, body io.ReadCloser) io.ReadCloser {
	_, params, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	set, err := htmlindex.Get(params["charset"])
	if err != nil || set == unicode.UTF8 {
		return body
	}
	return decodedBody{set.NewDecoder().Reader(body), body}
}

// withoutReplay returns the request in a form that net/http sends once. It repeats requests that have an
// idempotency key, if their connection was used before and ends without an answer: a second call of the
// model that no event records. Names of headers have no case, but net/http looks for its own.
func withoutReplay(r *http.Request) *http.Request {
	sent := r
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		values, ok := sent.Header[name]
		if !ok {
			continue
		}
		if sent == r {
			sent = r.WithContext(r.Context())
			sent.Header = r.Header.Clone()
		}
		delete(sent.Header, name)
		sent.Header[strings.ToLower(name)] = values
	}
	return sent
}

// isPlain reports whether an answer is not compressed. The transport has decompressed what it asked for.
func isPlain(res *http.Response) bool {
	encoding := res.Header.Get("Content-Encoding")
	return encoding == "" || strings.EqualFold(encoding, "identity")
}

// limitCause returns the time limit that ended the request's context, else err.
func limitCause(ctx context.Context, err error) error {
	if limit, ok := errors.AsType[*LimitError](context.Cause(ctx)); ok {
		return limit
	}
	return err
}

// watchedBody is a body with a silence limit. The limit of the first byte runs until the first read
// returns.
type watchedBody struct {
	io.ReadCloser
	left    int // remaining bytes; negative means no limit
	began   bool
	silence time.Duration
	ctx     context.Context //nolint:containedctx // the request's context, which lives as long as the body
	cancel  context.CancelCauseFunc
	end     *deadline
}

// Read fails with a *LimitError when nothing arrives for too long.
func (b *watchedBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	if b.left > 0 {
		p = p[:min(len(p), b.left)]
	}
	if b.began {
		b.end.start(LimitSilence, b.silence)
	}
	n, err := b.ReadCloser.Read(p)
	b.end.pause()
	if b.left > 0 {
		b.left -= n
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = limitCause(b.ctx, err)
		if n == 0 && !b.began {
			err = errors.Join(ErrUnanswered, err)
		}
	}
	b.began = b.began || n > 0
	return n, err
}

// Close ends the request.
func (b *watchedBody) Close() error {
	b.end.stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}
