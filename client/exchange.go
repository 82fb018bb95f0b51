package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Exchange is a raw request: it gets no generated key, is not retried, and every response counts as
// an answer, including errors. It is for tools that inspect the host.
type Exchange struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         any // nil means no body
}

// Exchange sends a request once and returns the complete response. For a stream, that is everything
// until the host closes it.
func (c *Client) Exchange(ctx context.Context, e Exchange) (*Answer, error) {
	var body []byte
	if e.Body != nil {
		var err error
		if body, err = encode(e.Body); err != nil {
			return nil, fmt.Errorf("%s %s: %w", e.Method, e.Path, err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	res, err := c.send(ctx, request{method: e.Method, path: e.Path, query: e.Query, header: e.Header}, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return c.whole(ctx, res, e.Method+" "+e.Path)
}

// whole reads a response to its end.
func (c *Client) whole(ctx context.Context, res *http.Response, what string) (*Answer, error) {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("%s: the answer is larger than %d bytes", what, maxAnswer)
	}
	return &Answer{Status: res.StatusCode, Header: res.Header, Body: b, Replayed: res.Header.Get(replayHeader) == "true"}, nil
}
