// Package vendor is what the doubles of model vendors have in common and what no
// vendor has rules about: a real server on a real port, the queue of replies that
// a test scripts, the requests that came, pauses that end with the caller, and
// answers that stop at a byte. A double embeds Server and adds its vendor's rules.
package vendor

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Recorded is a request as it arrived.
type Recorded struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         []byte
	// Status is what it was answered with.
	Status int
}

// Server holds a queue of replies of type R and the requests that came. Its zero
// value is ready to use; Close it once it was started.
type Server[R any] struct {
	url    string
	http   *http.Server
	end    context.CancelFunc
	active sync.WaitGroup

	turn sync.Mutex // held while a reply is chosen: replies are made one at a time

	mu       sync.Mutex // guards all below
	closed   bool
	replies  []R
	requests []Recorded
}

// Start serves on a free port of the loopback interface, once. Each request whose
// body could be read is a call that answer answers; of a body no more than maxBody
// bytes are read. Start panics if there is no port, as httptest does: a test cannot
// go on without it.
func (s *Server[R]) Start(maxBody int64, answer func(http.ResponseWriter, Call)) {
	if s.http != nil {
		panic("vendor: a double is started once")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("vendor: listen: " + err.Error())
	}
	ctx, end := context.WithCancel(context.Background())
	s.url, s.end = "http://"+l.Addr().String(), end
	s.http = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.enter() {
				return
			}
			defer s.active.Done()
			if c, err := read(r, maxBody); err == nil { // otherwise the caller went away
				answer(w, c)
			}
		}),
	}
	s.active.Go(func() { _ = s.http.Serve(l) }) // it returns when Close closes the listener
}

// read takes a request in. One byte beyond the bound tells a body that is too large.
func read(r *http.Request, maxBody int64) (Call, error) {
	c := Call{Arrived: time.Now(), ended: r.Context().Done()}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return Call{}, err
	}
	if int64(len(body)) > maxBody {
		body, c.TooLarge = body[:maxBody], true
	}
	c.Recorded = Recorded{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), Body: body}
	return c, nil
}

// URL is the base address, with no path and no final slash.
func (s *Server[R]) URL() string { return s.url }

// Enqueue adds replies to the queue.
func (s *Server[R]) Enqueue(replies ...R) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Next is the reply to a request: the next one of the queue; if there is none, what
// answer makes; without answer, plain.
func (s *Server[R]) Next(rec Recorded, answer func(Recorded) R, plain R) R {
	s.turn.Lock()
	defer s.turn.Unlock()
	if r, ok := s.Take(func(R) bool { return true }); ok {
		return r
	}
	if answer != nil {
		return answer(rec)
	}
	return plain
}

// Take gives the next reply of the queue, if there is one and it fits.
func (s *Server[R]) Take(fits func(R) bool) (reply R, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.replies) == 0 || !fits(s.replies[0]) {
		return reply, false
	}
	reply = s.replies[0]
	s.replies = s.replies[1:]
	return reply, true
}

// Left is how many replies nobody has got yet.
func (s *Server[R]) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.replies)
}

// Hello is what a model says that no test gave words.
func Hello() []string { return []string{"Hello", " from", " the", " double"} }

// Record keeps a request and the status of its answer. It is kept before the answer
// goes out, so that who has the answer finds the request.
func (s *Server[R]) Record(rec Recorded, status int) {
	rec.Status = status
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, rec)
}

// Requests are all requests so far, refused ones included, in order of arrival.
func (s *Server[R]) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Close breaks all connections off, ends all pauses and returns when every call has
// ended. A second call only waits.
func (s *Server[R]) Close() {
	s.mu.Lock()
	first := !s.closed && s.http != nil
	s.closed = true
	s.mu.Unlock()
	if first {
		_ = s.http.Close() // nothing to flush
		s.end()            // after it: a paused answer must not end as if it were whole
	}
	s.active.Wait()
}

// enter counts a call; false when the server is closing, for then nobody waits for
// it.
func (s *Server[R]) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.active.Add(1)
	}
	return !s.closed
}
