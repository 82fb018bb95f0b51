package openaicompat

import (
	"net/http"
	"time"
)

// Watched is a request with the times of its answer.
type Watched struct {
	Recorded
	// Arrived is when the server had read the request's headers.
	Arrived time.Time
	// Writes are the times just before each part of the body was written: the client may have the
	// part right afterwards. A stream has one for the role, one for each piece, and those of its
	// end.
	Writes []time.Time
}

// timer records the time of each write.
type timer struct {
	http.ResponseWriter
	watched Watched
}

// Write records the time and writes.
func (t *timer) Write(b []byte) (int, error) {
	t.watched.Writes = append(t.watched.Writes, time.Now())
	return t.ResponseWriter.Write(b)
}

// Unwrap lets the stream flush.
func (t *timer) Unwrap() http.ResponseWriter { return t.ResponseWriter }
