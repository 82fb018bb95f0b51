package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/fault"
)

// Error is a rejection by the host. errors.Is matches its code:
//
//	errors.Is(err, fault.New(fault.RunNotFound, ""))
type Error struct {
	// Status is the HTTP status. It is also set for codes unknown to this package.
	Status int
	// Fault holds the code, the message and the details.
	Fault *fault.Error
}

// Error returns code and message.
func (e *Error) Error() string { return e.Fault.Error() }

// Unwrap returns the fault.
func (e *Error) Unwrap() error { return e.Fault }

// ErrUnreachable means that the host was unreachable or did not answer in time.
var ErrUnreachable = errors.New("the host cannot be reached")

var errTimeout = errors.New("no answer in time")

// unreachable returns the error of an unanswered request. If the caller's context ended, that is
// returned instead.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeout) {
		return ctx.Err()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("%w: %s: %w", ErrUnreachable, c.base, err)
}

// ForeignError is a response that is not from an OpenWOP host: the URL is wrong, or a proxy
// answered.
type ForeignError struct {
	URL    string
	Status int
	Reason string
}

// Error describes the response.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s is not the API of a host (HTTP %d): %s", e.URL, e.Status, e.Reason)
}

// refusal converts a response other than 2xx.
func refusal(base *url.URL, res *http.Response, body []byte) error {
	f, err := fault.ParseEnvelope(body)
	if err == nil {
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
			f.RetryAfter = time.Duration(s) * time.Second
		}
		return &Error{Status: res.StatusCode, Fault: f}
	}
	foreign := &ForeignError{URL: base.String(), Status: res.StatusCode, Reason: "body " + excerpt(body)}
	if to := res.Header.Get("Location"); to != "" {
		foreign.Reason = "redirect to " + to
	} else if len(bytes.TrimSpace(body)) == 0 {
		foreign.Reason = "empty body"
	}
	if res.StatusCode == http.StatusBadGateway || res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusGatewayTimeout {
		return fmt.Errorf("%w: %w", ErrUnreachable, foreign) // a proxy in front of an unavailable host
	}
	return foreign
}

// excerpt returns the beginning of a body as one quoted line.
func excerpt(body []byte) string {
	const most = 80
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}
