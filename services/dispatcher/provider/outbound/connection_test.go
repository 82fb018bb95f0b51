package outbound_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// serveRaw answers each connection's request with bytes, and then ends the connection: at once with a
// reset, or normally.
func serveRaw(t *testing.T, response string, reset bool) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			_, _ = io.WriteString(c, response)
			if tcp, ok := c.(*net.TCPConn); ok && reset {
				_ = tcp.SetLinger(0)
			}
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// get reads an answer to its end.
func get(t *testing.T, address string) (body string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client := outbound.NewClient(provider.DefaultTimeouts(), outbound.Extras{})
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	require.NoError(t, err)
	res, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

func compressed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// What the connection does is distinguished from what the server says.
func TestNewTransportError_SaysWhatHappened(t *testing.T) {
	t.Parallel()
	head := func(more string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + more + "\r\n"
	}
	const event = "data: {\"a\":1}\n\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n", len(event), event)
	const (
		unreached = "could not be reached"
		closed    = "closed the connection before it answered"
		broke     = "broke before the answer was complete"
	)
	for name, tc := range map[string]struct {
		response            string
		reset               bool
		want                string
		capacity, retryable bool
	}{
		"closed before a byte":          {"", false, closed, true, true},
		"reset before a byte":           {"", true, closed, true, true},
		"closed after the header":       {head("Content-Length: 100\r\n"), false, closed, true, true},
		"too short for its length":      {head("Content-Length: 100\r\n") + event, false, broke, false, true},
		"chunks cut off":                {head("Transfer-Encoding: chunked\r\n") + chunk, false, broke, false, true},
		"a chunk cut off":               {head("Transfer-Encoding: chunked\r\n") + chunk[:8], false, broke, false, true},
		"a length that is none":         {head("Transfer-Encoding: chunked\r\n") + chunk + "zz\r\n", false, broke, false, true},
		"a redirect":                    {"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", false, "redirects to another address", false, false},
		"a redirect that moves":         {"HTTP/1.1 301 Moved Permanently\r\nLocation: /v1/\r\nContent-Length: 0\r\n\r\n", false, "redirects to another address", false, false},
		"no content":                    {"HTTP/1.1 204 No Content\r\n\r\n", false, "does not stream answers", false, false},
		"a page":                        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>", false, "does not stream answers", false, false},
		"no HTTP":                       {"220 mail.example ESMTP\r\n", false, "speaks no HTTP", false, true},
		"compressed, damaged":           {head("Content-Encoding: gzip\r\n") + compressed(event + event)[:20], false, broke, false, true},
		"compressed by another measure": {head("Content-Encoding: br\r\n") + "\x1b\x0f\x00", false, "compresses its answers", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := get(t, serveRaw(t, tc.response, tc.reset))
			require.Error(t, err)
			e := outbound.NewTransportError(err)
			require.Equal(t, provider.CodeUnavailable, e.Code)
			require.Contains(t, e.Message, tc.want, "%v", err)
			require.NotContains(t, e.Message, unreached)
			require.Equal(t, tc.capacity, e.Capacity)
			require.Equal(t, tc.retryable, e.Retryable)
		})
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	_, err = get(t, gone)
	e := outbound.NewTransportError(err)
	require.Equal(t, "the model's server could not be reached", e.Message)
	require.True(t, e.Capacity)
	require.Contains(t, outbound.NewTransportError(nil).Message, "ended its answer before it was complete")
	require.Contains(t, outbound.NewTransportError(errors.Join(outbound.ErrGarbage)).Message, "no part of an answer")
}

// A connection that is reset within an answer was reached.
func TestNewTransportError_ResetWithinTheAnswer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	read, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
		<-read
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}()
	client := outbound.NewClient(provider.DefaultTimeouts(), outbound.Extras{})
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String(), strings.NewReader("{}"))
	require.NoError(t, err)
	res, err := client.Do(r)
	require.NoError(t, err)
	_, err = io.ReadFull(res.Body, make([]byte, len("data: 1\n\n")))
	require.NoError(t, err)
	close(read)
	_, err = io.ReadAll(res.Body)
	require.Error(t, err)
	require.NoError(t, res.Body.Close())
	require.NoError(t, l.Close())
	<-done
	e := outbound.NewTransportError(err)
	require.Contains(t, e.Message, "broke before the answer was complete")
	require.False(t, e.Capacity)
	require.True(t, e.Retryable)
}

// Answers are read in the encodings that servers send unasked.
func TestClient_ReadsCompressedAnswers(t *testing.T) {
	t.Parallel()
	const event = "data: {\"a\":1}\n\n"
	for name, response := range map[string]string{
		"gzip":              "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n" + compressed(event),
		"gzip, in capitals": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: GZIP\r\n\r\n" + compressed(event),
		"identity":          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: identity\r\n\r\n" + event,
		"HTTP/1.0":          "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event,
	} {
		body, err := get(t, serveRaw(t, response, false))
		require.NoError(t, err, name)
		require.Equal(t, event, body, name)
	}
}

// A request whose connection ends without an answer is sent once, also with an idempotency key and over a
// connection that was used before.
func TestClient_RepeatsNoRequest(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "X-Other"} {
		var calls atomic.Int32
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "k", r.Header.Get(name))
			if calls.Add(1) == 1 {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: 1\n\n")
				return
			}
			panic(http.ErrAbortHandler)
		}))
		t.Cleanup(s.Close)
		c := outbound.NewClient(provider.Timeouts{}, outbound.Extras{})
		t.Cleanup(c.CloseIdleConnections)
		call := func() error {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader("{}"))
			require.NoError(t, err)
			r.Header.Set(name, "k")
			res, err := c.Do(r)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, res.Body)
			return errors.Join(err, res.Body.Close())
		}
		require.NoError(t, call())
		require.ErrorIs(t, call(), outbound.ErrUnanswered)
		require.EqualValues(t, 2, calls.Load(), name)
	}
}
