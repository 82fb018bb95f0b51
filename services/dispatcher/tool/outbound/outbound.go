// Package outbound is the HTTP client for peers configured by the operator. It only connects to the
// configured host.
package outbound

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"waybill.dev/waybill/services/dispatcher/callguard"
)

// Errors caused by the client's own restrictions.
var (
	ErrOtherHost = errors.New("the server points to another host")
	ErrTooLarge  = errors.New("the answer is too large")
)

// StatusError is a response about the server's state instead of the call.
type StatusError struct {
	Status int
	// RetryAfter is the requested wait; 0 if there is none.
	RetryAfter time.Duration
}

// Error contains the status, never the server's text.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answered with status %d", e.Status)
}

// Config describes a server.
type Config struct {
	// Base is the server's address. All requests must match its scheme and host.
	Base *url.URL
	// Token is the bearer token; empty for none.
	Token string
	// MaxBytes limits the body of a response, and each line of a stream.
	MaxBytes int64
}

// New returns a client. It ignores proxies of the environment, because the operator configures the
// server and HTTP_PROXY is meant for other programs.
func New(c Config) *http.Client {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		MaxIdleConns: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
	}
	return &http.Client{
		Transport: transport{cfg: c, next: t},
		// A redirect could change the call; tool servers do not need it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return ErrOtherHost },
	}
}

// ParseBase parses an address.
func ParseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, errors.New("want http(s)://host[:port]/path")
	case u.User != nil:
		return nil, errors.New("must not hold a user or a password; give the token apart")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("must not have a query or a fragment")
	}
	return u, nil
}

// SameHost reports whether two addresses have the same scheme, host and port. The port may be implied.
func SameHost(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

type transport struct {
	cfg  Config
	next *http.Transport
}

// CloseIdleConnections is called by the http.Client method of that name.
func (g transport) CloseIdleConnections() { g.next.CloseIdleConnections() }

// RoundTrip sends a request to the configured host and limits the response.
func (g transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := callguard.Check(r.Context()); err != nil {
		return nil, err
	}
	if !SameHost(r.URL, g.cfg.Base) {
		return nil, ErrOtherHost
	}
	if g.cfg.Token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+g.cfg.Token)
	}
	seen := noteFrom(r.Context())
	res, err := g.next.RoundTrip(r)
	if err != nil {
		seen.status(0)
		return nil, err
	}
	seen.status(res.StatusCode)
	if isServerState(res.StatusCode) {
		return nil, errors.Join(&StatusError{Status: res.StatusCode, RetryAfter: retryAfter(res.Header)}, res.Body.Close())
	}
	stream := isStream(res)
	res.Body = &boundedBody{ReadCloser: res.Body, max: g.cfg.MaxBytes, left: g.cfg.MaxBytes, lines: stream, seen: seen}
	if stream {
		return res, nil
	}
	keep, _ := r.Context().Value(documentKey{}).(*Document)
	return readDocument(res, keep)
}

// isServerState reports the statuses that do not depend on the call.
func isServerState(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
	}
}

// maxWait is the longest wait accepted from a server.
const maxWait = 24 * time.Hour

func retryAfter(h http.Header) time.Duration {
	secs, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || secs < 0 {
		return 0
	}
	return min(time.Duration(min(secs, 1<<20))*time.Second, maxWait)
}

// isStream reports whether a response is a stream of server-sent events.
func isStream(res *http.Response) bool {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// readDocument reads a body completely. A body that is too large then fails its own call instead of
// the session.
func readDocument(res *http.Response, keep *Document) (*http.Response, error) {
	b, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	keep.set(b)
	res.Body = io.NopCloser(bytes.NewReader(b))
	return res, nil
}

// boundedBody fails with ErrTooLarge beyond the limit.
type boundedBody struct {
	io.ReadCloser
	max, left int64
	// lines makes max the limit of each line, so of each event of a stream: reports of
	// progress do not count against the answer.
	lines bool
	seen  *Note
}

// Read reads up to one byte beyond the limit, which shows that there is more.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	p = p[:min(int64(len(p)), b.left+1)]
	n, err := b.ReadCloser.Read(p)
	if end := bytes.LastIndexByte(p[:n], '\n'); b.lines && end >= 0 {
		b.left = b.max - int64(n-end-1)
		return n, err
	}
	if b.left -= int64(n); b.left < 0 {
		b.seen.tooLarge()
		return n - 1, ErrTooLarge
	}
	return n, err
}

// Document is the body of a call's last response that is no stream, as the server sent it.
type Document struct {
	mu   sync.Mutex
	body []byte
}

type documentKey struct{}

// WithDocument returns a context whose requests keep the body of the last response.
func WithDocument(ctx context.Context) (context.Context, *Document) {
	d := &Document{}
	return context.WithValue(ctx, documentKey{}, d), d
}

func (d *Document) set(b []byte) {
	if d != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.body = b
	}
}

// Bytes returns the body; nil if there was none.
func (d *Document) Bytes() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.body
}

// Note records the responses of one call, which the libraries above may not report.
type Note struct {
	mu    sync.Mutex
	last  int
	large bool
}

type noteKey struct{}

// WithNote returns a context whose requests are noted.
func WithNote(ctx context.Context) (context.Context, *Note) {
	n := &Note{}
	return context.WithValue(ctx, noteKey{}, n), n
}

func noteFrom(ctx context.Context) *Note {
	n, _ := ctx.Value(noteKey{}).(*Note)
	return n
}

func (n *Note) status(code int) {
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.last = code
	}
}

func (n *Note) tooLarge() {
	if n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.large = true
	}
}

// Status returns the status of the response to the last request; 0 if there was none.
func (n *Note) Status() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// TooLarge reports whether a response exceeded the limit.
func (n *Note) TooLarge() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.large
}
