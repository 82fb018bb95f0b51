package gemini

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/outbound"
)

// maxEvent limits one event: the largest piece of an answer and its envelope.
const maxEvent = provider.MaxAnswerBytes + 1<<20

var errEventTooLong = &provider.Error{
	Code:    provider.CodeContentTooLong,
	Message: "a piece of the answer is longer than 10 MiB",
}

// frames reads server-sent events and passes those with data on, one line each. The SDK's reader
// treats a keep-alive as an error, buffers 256 MiB, and rescans its buffer with each read.
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

// Read never fails. The exchange records how the stream broke.
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
	_ = f.body.Close() // the SDK would print the error
	return nil
}

// next prepares an event. An event without its final empty line counts if the body ended without an
// error; it must be a whole document.
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
	if e := oddError(data); e != nil {
		f.ended, f.x.broken = true, e
		return
	}
	data, counts := plain(data)
	f.x.count(counts)
	f.x.note(data)
	f.ready = append(append([]byte("data: "), data...), "\n\n"...)
}

// oddError returns an error that is not in the vendor's form, in which the SDK would not see it.
func oddError(data []byte) error {
	if !bytes.Contains(data, []byte(`"error"`)) {
		return nil
	}
	raw, ok := strictjson.Member(data, "error")
	if kind := strictjson.KindOf(raw); !ok || kind == "an object" || kind == "null" {
		return nil
	}
	return &outbound.ServerError{Body: outbound.ParseError(data)}
}

// event reads up to an empty line or the end.
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

// line reads a line without its line ending.
func (f *frames) line() ([]byte, error) {
	var long []byte
	for {
		part, err := f.lines.ReadSlice('\n')
		if long == nil && err == nil { // usual case: the line fits the buffer
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

// event is an event of the stream.
type event struct {
	data []byte
	// bare means a document without a field name. The vendor's front end sends errors within a
	// stream in this form.
	bare bool
}

func (e *event) take(line []byte) {
	if len(e.data) == 0 && bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
		e.bare = true
	}
	value, isData := bytes.CutPrefix(line, []byte("data:"))
	if !isData && !e.bare {
		return // a comment or an unused field
	}
	if len(e.data) > 0 {
		e.data = append(e.data, ' ') // line break between tokens
	}
	e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
}
