// Package client calls an OpenWOP host over its REST API: runs, events, interrupts, workflows,
// discovery.
//
// Rejected requests return an *Error with the host's code. Every write carries an Idempotency-Key,
// so that it can be retried after a lost answer without being done twice. Follow returns the events
// of a run live, each once and in order, however often the connection breaks.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"waybill.dev/waybill/protocol/fault"
)

// Client calls one host. It is safe for concurrent use.
type Client struct {
	base    *url.URL
	token   string
	http    *http.Client
	agent   string
	timeout time.Duration
	wait    func(ctx context.Context, d time.Duration) error
}

// Option configures a client.
type Option func(*Client)

// WithToken sends a credential with every request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithTransport replaces http.DefaultTransport.
func WithTransport(t http.RoundTripper) Option { return func(c *Client) { c.http.Transport = t } }

// WithUserAgent sets the User-Agent.
func WithUserAgent(name string) Option { return func(c *Client) { c.agent = name } }

// WithTimeout limits a request without long polling; 30 s by default.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// New returns a client for the host at a URL, such as http://127.0.0.1:8080 or
// https://example.org/waybill. It does not call the host.
func New(base string, options ...Option) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not a valid host URL: want a URL such as http://127.0.0.1:8080, without user and query", base)
	}
	c := &Client{base: u, agent: "waybill-client", timeout: 30 * time.Second, wait: sleep, http: &http.Client{
		// Redirects are reported, not followed: a POST would become a GET, and the credential is
		// meant for this host only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, o := range options {
		o(c)
	}
	return c, nil
}

// Base returns the URL of the host, without a trailing slash.
func (c *Client) Base() string { return c.base.String() }

// Answer is a successful response.
type Answer struct {
	Status int
	Header http.Header
	Body   json.RawMessage
	// Replayed: the request with this Idempotency-Key was done before, and this is its original
	// answer.
	Replayed bool
}

// request is one call.
type request struct {
	method, path string
	query        url.Values
	body         any    // nil means no body
	key          string // Idempotency-Key of a write; empty generates one
	header       http.Header
	// wait is how long the host may delay the answer.
	wait time.Duration
	// feature is what the request is for, if hosts need not have it; see UnofferedError.
	feature string
	// runID is the run that the path names, followed by a verb; empty for none.
	runID string
}

// Retries of a request whose answer was lost, or that the host asks to repeat soon.
const (
	maxTries      = 3
	maxRetryAfter = 3 * time.Second
	firstPause    = 200 * time.Millisecond
)

// maxAnswer limits the bytes read of an answer.
const maxAnswer = 256 << 20

// replayHeader marks a replayed answer (OpenWOP host contract §2.1).
const replayHeader = "Openwop-Idempotent-Replay"

// do sends a request and retries it.
func (c *Client) do(ctx context.Context, r request) (*Answer, error) {
	a, err := c.attempt(ctx, r)
	if err != nil {
		return nil, c.offered(ctx, r, err)
	}
	return a, nil
}

func (c *Client) attempt(ctx context.Context, r request) (*Answer, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = encode(r.body); err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
	}
	if r.method != http.MethodGet && r.key == "" {
		r.key = uuid.NewString()
	}
	for try := 1; ; try++ {
		a, err := c.once(ctx, r, body)
		if err == nil || try == maxTries {
			return a, err
		}
		pause := firstPause << (try - 1)
		if after, again := sendAgain(err); !again {
			return nil, err
		} else if after > 0 {
			pause = after
		}
		if err := c.wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// sendAgain reports whether the same request is likely to succeed soon.
func sendAgain(err error) (after time.Duration, again bool) {
	if refused, ok := errors.AsType[*Error](err); ok {
		e := refused.Fault
		return e.RetryAfter, fault.Lookup(e.Code).Retryable && e.RetryAfter > 0 && e.RetryAfter <= maxRetryAfter
	}
	// A refused connection is reported immediately. A lost answer is retried; a write has its key.
	return 0, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// once sends a request one time.
func (c *Client) once(ctx context.Context, r request, body []byte) (*Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout+r.wait, errTimeout)
	defer cancel()
	res, err := c.send(ctx, r, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	a, err := c.whole(ctx, res, r.method+" "+r.path)
	if err != nil {
		return nil, err
	}
	if a.Status < 200 || a.Status > 299 {
		return nil, refusal(c.base, res, a.Body)
	}
	return a, nil
}

// send returns the response with its body unread.
func (c *Client) send(ctx context.Context, r request, body []byte) (*http.Response, error) {
	to := c.base.String() + r.path
	if len(r.query) > 0 {
		to += "?" + r.query.Encode()
	}
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, to, content)
	if err != nil {
		return nil, err
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	req.Header.Set("User-Agent", c.agent)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return res, nil
}

// get reads a document into v.
func (c *Client) get(ctx context.Context, path string, query url.Values, v any) (*Answer, error) {
	return c.into(ctx, request{method: http.MethodGet, path: path, query: query}, v)
}

// into reads the answer of a request into v.
func (c *Client) into(ctx context.Context, r request, v any) (*Answer, error) {
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(a.Body, v); err != nil {
		return nil, &ForeignError{URL: c.base.String() + r.path, Status: a.Status, Reason: "invalid answer: " + err.Error()}
	}
	return a, nil
}

// Get reads any document of the host, by its path relative to the base.
func (c *Client) Get(ctx context.Context, path string) (*Answer, error) {
	return c.do(ctx, request{method: http.MethodGet, path: path})
}

// encode does not escape HTML characters.
func encode(v any) ([]byte, error) {
	if doc, ok := v.(json.RawMessage); ok { // sent as it is written
		return doc, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
