// Package vendor is the part that all doubles of model vendors share: a server on a real port, a
// queue of scripted replies, recorded requests, pauses that end when the caller disconnects, and
// answers cut at a given byte. A double embeds Server and adds its vendor's rules.
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

// Recorded is a received request.
type Recorded struct {
	Method, Path string
	Query        url.Values
	Header       http.Header
	Body         []byte
	// Status is the HTTP status of the answer.
	Status int
}

// Server holds a queue of replies of type R and the recorded requests. Its zero value is ready to
// use. Close it after Start.
type Server[R any] struct {
	url    string
	http   *http.Server
	end    context.CancelFunc
	active sync.WaitGroup

	turn sync.Mutex // held while a reply is chosen: one at a time

	mu       sync.Mutex // guards the fields below
	closed   bool
	replies  []R
	requests []Recorded
}

// Start serves on a free port of the loopback interface; call it once. It reads at most maxBody
// bytes of each body and calls answer if the body could be read. Like httptest, it panics if no
// port is free.
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
			if c, err := read(r, maxBody); err == nil { // on an error the caller disconnected
				answer(w, c)
			}
		}),
	}
	s.active.Go(func() { _ = s.http.Serve(l) }) // it returns when Close closes the listener
}

// read reads a request. It reads one byte over the limit to detect a body that is too large.
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

// URL is the base address, without path or trailing slash.
func (s *Server[R]) URL() string { return s.url }

// Enqueue adds replies to the queue.
func (s *Server[R]) Enqueue(replies ...R) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies = append(s.replies, replies...)
}

// Next returns the reply to a request: the next one of the queue, otherwise the result of answer.
// plain is used if answer is nil.
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

// Take removes and returns the next reply of the queue if fits accepts it.
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

// Left is the number of queued replies.
func (s *Server[R]) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.replies)
}

// Hello returns the default text of a model's answer.
func Hello() []string { return []string{"Hello", " from", " the", " double"} }

// Record stores a request and the status of its answer. Call it before answering, so that a client
// with an answer finds its request recorded.
func (s *Server[R]) Record(rec Recorded, status int) {
	rec.Status = status
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, rec)
}

// Requests returns all requests so far in order of arrival, rejected ones included.
func (s *Server[R]) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Close closes all connections, ends all pauses and waits until every call has ended. It may be
// called again.
func (s *Server[R]) Close() {
	s.mu.Lock()
	first := !s.closed && s.http != nil
	s.closed = true
	s.mu.Unlock()
	if first {
		_ = s.http.Close() // nothing to flush
		s.end()            // after Close: a paused answer must not end normally
	}
	s.active.Wait()
}

// enter counts a call. It returns false if the server is closing.
func (s *Server[R]) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.active.Add(1)
	}
	return !s.closed
}
