// Package client calls a host of OpenWOP over its REST API: runs, events,
// interrupts, workflows, discovery.
//
// What the host refuses comes back as an *Error with the code that the host gave.
// Every write carries an Idempotency-Key, so that it is tried again after a lost
// answer without being done twice. Follow gives the events of a run live, each
// once and in order, however often the connection breaks.
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

// Client calls one host. It may be used by several goroutines at once.
type Client struct {
	base    *url.URL
	token   string
	http    *http.Client
	agent   string
	timeout time.Duration
	wait    func(ctx context.Context, d time.Duration) error
}

// Option sets a client up.
type Option func(*Client)

// WithToken sends a credential with every request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithTransport sends requests in another way than http.DefaultTransport does.
func WithTransport(t http.RoundTripper) Option { return func(c *Client) { c.http.Transport = t } }

// WithUserAgent names the program that calls.
func WithUserAgent(name string) Option { return func(c *Client) { c.agent = name } }

// WithTimeout bounds a request that waits for nothing; 30 s unless told.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// New makes a client of the host at a URL, such as http://127.0.0.1:8080 or
// https://example.org/waybill. It does not call the host.
func New(base string, options ...Option) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%q is no URL of a host: want one such as http://127.0.0.1:8080, without user and query", base)
	}
	c := &Client{base: u, agent: "waybill-client", timeout: 30 * time.Second, wait: sleep, http: &http.Client{
		// A redirect is told, not followed: a POST would become a GET, and the
		// credential is for this host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for _, o := range options {
		o(c)
	}
	return c, nil
}

// Base is the URL of the host, without a slash at its end.
func (c *Client) Base() string { return c.base.String() }

// Answer is what the host answers.
type Answer struct {
	Status int
	Header http.Header
	Body   json.RawMessage
	// Replayed says that nothing was done: it had been done before, with the same
	// Idempotency-Key, and this is its answer.
	Replayed bool
}

// request is one call.
type request struct {
	method, path string
	query        url.Values
	body         any    // nil: none
	key          string // Idempotency-Key of a write; empty: a new one
	header       http.Header
	// wait is how long the host may keep the answer back.
	wait time.Duration
}

// Tries of a request whose answer was lost, or that the host asks to send again soon.
const (
	maxTries      = 3
	maxRetryAfter = 3 * time.Second
	firstPause    = 200 * time.Millisecond
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 256 << 20

// replayHeader marks an answer that was given before (OpenWOP host contract §2.1).
const replayHeader = "Openwop-Idempotent-Replay"

// do sends a request until it is answered.
func (c *Client) do(ctx context.Context, r request) (*Answer, error) {
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

// sendAgain says whether the same request may well succeed in a moment.
func sendAgain(err error) (after time.Duration, again bool) {
	if refused, ok := errors.AsType[*Error](err); ok {
		e := refused.Fault
		return e.RetryAfter, fault.Lookup(e.Code).Retryable && e.RetryAfter > 0 && e.RetryAfter <= maxRetryAfter
	}
	// Nobody listens: that is told at once. An answer that was lost on its way is
	// asked for again; a write has its key.
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

// send gives the answer with its body unread.
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
		return nil, &ForeignError{URL: c.base.String() + r.path, Status: a.Status, Reason: "its answer cannot be read: " + err.Error()}
	}
	return a, nil
}

// Get reads any document of the host, by its path below the base.
func (c *Client) Get(ctx context.Context, path string) (*Answer, error) {
	return c.do(ctx, request{method: http.MethodGet, path: path})
}

// encode leaves text as it is: nobody reads it as HTML.
func encode(v any) ([]byte, error) {
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
