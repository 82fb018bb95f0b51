package openaicompat

import (
	"net/http"
	"time"
)

// Watched is a request and when its answer went out.
type Watched struct {
	Recorded
	// Arrived is when the request's headers were there.
	Arrived time.Time
	// Writes are the instants at which the parts of the body were written: those
	// just before, for just after it the client may have them already. A stream has
	// one for the role, one for each piece, and those of its end.
	Writes []time.Time
}

// timer notes when something is written.
type timer struct {
	http.ResponseWriter
	watched Watched
}

// Write notes the instant and writes.
func (t *timer) Write(b []byte) (int, error) {
	t.watched.Writes = append(t.watched.Writes, time.Now())
	return t.ResponseWriter.Write(b)
}

// Unwrap lets the stream flush.
func (t *timer) Unwrap() http.ResponseWriter { return t.ResponseWriter }
