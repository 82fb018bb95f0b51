package outbound

import (
	"bytes"
	"io"
)

// maxEvent limits one event of a stream: room for the longest answer in one piece, as JSON.
const maxEvent = 16 << 20

// events limits the size of each event of a stream. Stream readers buffer an event until its end,
// so a server that never ends one could exhaust the host's memory.
type events struct {
	io.ReadCloser
	size int  // size of the current event in bytes
	text bool // the current line is not empty
}

// Read returns ErrTooLong for an event that is too long.
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

// endLine ends a line, and the event if the line is empty.
func (e *events) endLine() {
	if !e.text {
		e.size = 0
	}
	e.text = false
}
