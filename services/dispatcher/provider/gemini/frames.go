package gemini

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// maxEvent bounds one event: the largest piece of an answer, and what stands
// around it.
const maxEvent = provider.MaxAnswerBytes + 1<<20

var errEventTooLong = &provider.Error{Code: provider.CodeContentTooLong, Message: "a piece of the answer is longer than 10 MiB"}

// frames reads server-sent events and gives those with data on, one line each.
// The SDK's own reader takes a keep-alive for an error, buffers 256 MiB, and goes
// through its buffer from the start with each read.
type frames struct {
	body  io.ReadCloser
	lines *bufio.Reader
	x     *exchange
	ready []byte
	ended bool
}

func newFrames(body io.ReadCloser, x *exchange) *frames {
	return &frames{body: body, lines: bufio.NewReaderSize(body, 16<<10), x: x}
}

// Read never fails: how the stream broke is noted in the exchange.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.ready) == 0 {
		if f.ended {
			return 0, io.EOF
		}
		f.next()
	}
	n := copy(p, f.ready)
	f.ready = f.ready[n:]
	return n, nil
}

// Close ends the request.
func (f *frames) Close() error {
	_ = f.body.Close() // the SDK would print it
	return nil
}

// next readies an event. One without its final empty line counts if the body
// ends there in good order: it must still be a whole document.
func (f *frames) next() {
	data, err := f.event()
	if err != nil {
		f.ended = true
	}
	if err != nil && !errors.Is(err, io.EOF) {
		f.x.broken = err
		return
	}
	// Gateways end streams as other vendors do.
	if len(data) == 0 || string(data) == "[DONE]" {
		return
	}
	f.x.note(data)
	f.ready = append(append([]byte("data: "), data...), "\n\n"...)
}

// event reads up to an empty line, or the end.
func (f *frames) event() ([]byte, error) {
	var e event
	for {
		line, err := f.line()
		if err == nil && len(line) == 0 {
			return e.data, nil
		}
		e.take(line)
		if len(e.data) > maxEvent {
			return nil, errEventTooLong
		}
		if err != nil {
			return e.data, err
		}
	}
}

// line reads a line without its end.
func (f *frames) line() ([]byte, error) {
	var long []byte
	for {
		part, err := f.lines.ReadSlice('\n')
		if long == nil && err == nil { // the usual: a line that fits the buffer
			return bytes.TrimRight(part, "\r\n"), nil
		}
		long = append(long, part...)
		if len(long) > maxEvent {
			return nil, errEventTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(long, "\r\n"), err
		}
	}
}

// event is one of the stream's.
type event struct {
	data []byte
	// bare says that it is a document without a field's name: so the vendor's front
	// end puts an error into a stream that has begun.
	bare bool
}

func (e *event) take(line []byte) {
	if len(e.data) == 0 && bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
		e.bare = true
	}
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	if !isData && !e.bare {
		return // a comment, or a field that says nothing of the answer
	}
	if len(e.data) > 0 {
		e.data = append(e.data, ' ') // a line's end, between tokens
	}
	e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
}
