// Package outbound is the HTTP client for servers that the operator has named:
// it reaches the named host and no other, whatever a server says.
package outbound

import (
	"bytes"
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

	"waybill.dev/waybill/services/dispatcher/replayguard"
)

// Ends of a call that the client itself brings about.
var (
	ErrOtherHost = errors.New("the server points to another host")
	ErrTooLarge  = errors.New("the answer is too large")
)

// StatusError is an answer that tells of the server's state, not of the call.
type StatusError struct {
	Status int
	// RetryAfter is how long the server asks to wait; 0 when it does not say.
	RetryAfter time.Duration
}

// Error tells the status; what the server wrote beside it is not repeated.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the server answered with status %d", e.Status)
}

// Config names a server.
type Config struct {
	// Base is the server's address; scheme and host of every request are its own.
	Base *url.URL
	// Token is sent as a bearer; empty for none.
	Token string
	// MaxBytes bounds the body of one answer.
	MaxBytes int64
}

// New makes a client. It takes no proxy from the environment: the operator names
// the server, and what HTTP_PROXY says is meant for browsers.
func New(c Config) *http.Client {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	t := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
		MaxIdleConns: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
	}
	return &http.Client{
		Transport: transport{cfg: c, next: t},
		// A redirect could turn a call into another one; no server of tools needs it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return ErrOtherHost },
	}
}

// ParseBase reads an address.
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

type transport struct {
	cfg  Config
	next *http.Transport
}

// CloseIdleConnections is found by http.Client's method of that name.
func (g transport) CloseIdleConnections() { g.next.CloseIdleConnections() }

// RoundTrip asks the named host and bounds its answer.
func (g transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := replayguard.Check(r.Context()); err != nil {
		return nil, err
	}
	if r.URL.Scheme != g.cfg.Base.Scheme || !strings.EqualFold(r.URL.Host, g.cfg.Base.Host) {
		return nil, ErrOtherHost
	}
	if g.cfg.Token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+g.cfg.Token)
	}
	res, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	seen := noteFrom(r.Context())
	seen.status(res.StatusCode)
	if isServerState(res.StatusCode) {
		return nil, errors.Join(&StatusError{Status: res.StatusCode, RetryAfter: retryAfter(res.Header)}, res.Body.Close())
	}
	res.Body = &boundedBody{ReadCloser: res.Body, left: g.cfg.MaxBytes, seen: seen}
	return readDocument(res)
}

// isServerState are the statuses that say nothing of the call itself.
func isServerState(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	default:
		return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
	}
}

// maxWait is the longest wait that a server is granted.
const maxWait = 24 * time.Hour

func retryAfter(h http.Header) time.Duration {
	secs, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || secs < 0 {
		return 0
	}
	return min(time.Duration(min(secs, 1<<20))*time.Second, maxWait)
}

// readDocument reads a body that is one document at once, so that one that is too large
// fails its own call and not the session it belongs to.
func readDocument(res *http.Response) (*http.Response, error) {
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return res, nil
	}
	b, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(b))
	return res, nil
}

// boundedBody fails with ErrTooLarge where the bound is passed.
type boundedBody struct {
	io.ReadCloser
	left int64
	seen *Note
}

// Read reads up to the bound and one byte more, which tells that there is more.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	p = p[:min(int64(len(p)), b.left+1)]
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		b.seen.tooLarge()
		return n - 1, ErrTooLarge
	}
	return n, err
}

// Note is what became of the requests of one call, which libraries above may not
// tell.
type Note struct {
	mu    sync.Mutex
	last  int
	large bool
}

type noteKey struct{}

// WithNote makes a context whose requests are noted.
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

// Status is that of the last answer; 0 when there was none.
func (n *Note) Status() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// TooLarge reports whether an answer was cut off for its size.
func (n *Note) TooLarge() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.large
}
