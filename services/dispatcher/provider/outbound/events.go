package outbound

import (
	"bytes"
	"io"
)

// maxEvent bounds one event of a stream: room for the longest answer in one piece,
// as JSON.
const maxEvent = 16 << 20

// events is a stream whose every event is bounded. Those who read streams keep an
// event until its end, however many lines it has; a server that never ends one
// would fill the host's memory.
type events struct {
	io.ReadCloser
	size int  // bytes of the event so far
	text bool // the line so far has more than a carriage return
}

// Read fails with ErrTooLong within an event that is too long.
func (e *events) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		rest = after
		e.size += len(line)
		e.text = e.text || len(bytes.TrimSuffix(line, []byte("\r"))) > 0
		if e.size > maxEvent {
			return 0, ErrTooLong
		}
		if ended {
			e.endLine()
		}
	}
	return n, err
}

// endLine ends the event too, if the line is empty.
func (e *events) endLine() {
	if !e.text {
		e.size = 0
	}
	e.text = false
}
