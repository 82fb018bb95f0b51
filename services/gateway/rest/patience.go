package rest

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// Patience limits how long a caller may take to send a body and to read an answer. Event
// streams have limits of their own. 0 means no limit.
type Patience struct {
	// Start is the time until the first byte, on top of what MinRate allows.
	Start time.Duration
	// MinRate is the number of bytes per second that a caller must send or read.
	MinRate int64
	// Total limits the whole body.
	Total time.Duration
}

// DefaultPatience suits callers on slow networks.
func DefaultPatience() Patience {
	return Patience{Start: 5 * time.Second, MinRate: 8 << 10, Total: time.Minute}
}

// String describes the limits.
func (p Patience) String() string {
	return fmt.Sprintf("%d bytes a second after %s, at most %s", p.MinRate, p.Start, p.Total)
}

// deadline returns when n bytes must have been moved since begun; zero means never.
func (p Patience) deadline(begun time.Time, n int64) time.Time {
	allowed := p.Total
	if p.Start > 0 && p.MinRate > 0 {
		byRate := p.Start + time.Duration(float64(n)/float64(p.MinRate)*float64(time.Second))
		if allowed == 0 || byRate < allowed {
			allowed = byRate
		}
	}
	if allowed == 0 {
		return time.Time{}
	}
	return begun.Add(allowed)
}

// Handler applies the limits to the requests of next.
func (p Patience) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: p}
		out.patience.Total = 0 // an answer may be large
		if r.ContentLength == 0 {
			next.ServeHTTP(out, r)
			return
		}
		body := &patientBody{ReadCloser: r.Body, control: out.control, patience: p, begun: time.Now()}
		in := *r // the server reads the rest of the original's body itself
		in.Body = body
		body.allow()
		out.answering = body.settle
		defer body.settle()
		next.ServeHTTP(out, &in)
	})
}

// patientBody is a body that must arrive in time.
type patientBody struct {
	io.ReadCloser

	control  *http.ResponseController
	patience Patience
	begun    time.Time
	read     int64
	ended    bool // all of it arrived
	settled  bool
}

// allow sets the deadline of the next read. Writers other than those of net/http may not
// support deadlines.
func (b *patientBody) allow() {
	_ = b.control.SetReadDeadline(b.patience.deadline(b.begun, b.read))
}

// Read reads within the time limit.
func (b *patientBody) Read(p []byte) (int, error) {
	if !b.settled {
		b.allow()
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if err == io.EOF && !b.ended { //nolint:errorlint // a reader returns it unwrapped
		b.ended = true
		// The server reads on, to notice that the client disconnects.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// unreadWithin is how long the server waits for a body that its handler did not need, before
// it answers and closes the connection.
const unreadWithin = 100 * time.Millisecond

// settle is called before the answer, for which the server reads the rest of the body.
func (b *patientBody) settle() {
	if b.settled || b.ended {
		return
	}
	b.settled = true
	_ = b.control.SetReadDeadline(time.Now().Add(unreadWithin))
}

// patientWriter is an answer that must be read in time.
type patientWriter struct {
	http.ResponseWriter

	control  *http.ResponseController
	patience Patience
	begun    time.Time
	wrote    int64
	// answering is called before the first byte; nil if the request has no body.
	answering func()
}

// allow sets the deadline of the next n bytes.
func (w *patientWriter) allow(n int) {
	if w.begun.IsZero() {
		w.begun = time.Now()
		if w.answering != nil {
			w.answering()
		}
	}
	w.wrote += int64(n)
	_ = w.control.SetWriteDeadline(w.patience.deadline(w.begun, w.wrote))
}

// WriteHeader sends the headers, which the server may send with the body.
func (w *patientWriter) WriteHeader(code int) {
	w.allow(0)
	w.ResponseWriter.WriteHeader(code)
}

// Write writes within the time limit.
func (w *patientWriter) Write(p []byte) (int, error) {
	w.allow(len(p))
	return w.ResponseWriter.Write(p)
}

// Unwrap returns the real writer to http.ResponseController.
func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// endless returns the writer of a stream, which sets its own deadlines.
func endless(w http.ResponseWriter) http.ResponseWriter {
	if p, ok := w.(*patientWriter); ok {
		return p.ResponseWriter
	}
	return w
}
