package models

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// line is a proxy between a host and a vendor, so that a test can hold a call at a known point.
type line struct {
	// url replaces the vendor's address in the host's configuration.
	url string

	target *url.URL
	mu     sync.Mutex // guards both points
	// before holds the next call, after holds its answer
	before, after *point
}

// point is where a call is held. reached is closed when the call arrives; the test closes open to
// release it. sent is closed when the whole answer is written, gone when the host disconnects
// during the hold.
type point struct{ reached, open, sent, gone chan struct{} }

func newPoint() *point {
	return &point{make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})}
}

func newLine(t *testing.T, v *vendor) *line {
	t.Helper()
	target, err := url.Parse(v.url)
	require.NoError(t, err)
	l := &line{target: target}
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	l.url = s.URL + target.Path
	return l
}

// holdCall holds the next call before it reaches the vendor.
func (l *line) holdCall() *point {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before = newPoint()
	return l.before
}

// holdAnswer holds the next answer until it is complete.
func (l *line) holdAnswer() *point {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.after = newPoint()
	return l.after
}

// take returns the points of a call; nil if it is not held.
func (l *line) take() (before, after *point) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, after = l.before, l.after
	l.before, l.after = nil, nil
	return before, after
}

// wait holds a call at the point. It returns false if the host disconnected.
func (p *point) wait(r *http.Request) bool {
	close(p.reached)
	select {
	case <-p.open:
		return true
	case <-r.Context().Done():
		close(p.gone)
		return false
	}
}

// ServeHTTP forwards a call.
func (l *line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	before, after := l.take()
	body, err := io.ReadAll(r.Body)
	if err != nil || before != nil && !before.wait(r) {
		return // the host disconnected
	}
	res, err := l.ask(r, body)
	if err != nil {
		panic(http.ErrAbortHandler) // break off as the vendor does
	}
	defer func() { _ = res.Body.Close() }()
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	if after == nil {
		w.WriteHeader(res.StatusCode)
		relay(w, res.Body)
		return
	}
	answer, err := io.ReadAll(res.Body)
	if err != nil || !after.wait(r) {
		return
	}
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(answer) // the test may have killed the host
	_ = http.NewResponseController(w).Flush()
	close(after.sent)
}

func (l *line) ask(r *http.Request, body []byte) (*http.Response, error) {
	u := *l.target
	u.Path, u.RawQuery = r.URL.Path, r.URL.RawQuery
	req, err := http.NewRequestWithContext(r.Context(), r.Method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header = r.Header.Clone()
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return http.DefaultTransport.RoundTrip(req)
}

// relay forwards pieces as they arrive.
func relay(w http.ResponseWriter, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_, _ = w.Write(buf[:n]) // the host may have disconnected
			_ = http.NewResponseController(w).Flush()
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // a broken answer breaks here, too
		}
	}
}
