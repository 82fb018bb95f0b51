package outbound

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// maxEvent limits one event of a stream: room for the longest answer in one piece, as JSON.
const maxEvent = 16 << 20

// isMedia reports whether a response cannot contain an answer. Many servers and gateways do not label
// their streams, or label them as pages, so that otherwise the body decides.
func isMedia(res *http.Response) bool {
	family, _, _ := strings.Cut(strings.ToLower(res.Header.Get("Content-Type")), "/")
	return slices.Contains([]string{"image", "audio", "video", "font"}, family)
}

// IsEventStream reports whether a response is labelled as a stream of server-sent events.
func IsEventStream(res *http.Response) bool {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && kind == "text/event-stream"
}

// isAmazonStream reports whether a response is a stream of Amazon's binary frames.
func isAmazonStream(res *http.Response) bool {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return err == nil && kind == "application/vnd.amazon.eventstream"
}

// stream reads an answer in the forms that servers send, and passes it on as server-sent events of
// one data line each. It accepts a byte order mark, all line endings, events without data (keep-alive),
// a last event without its empty line, and JSON documents without events: one alone, one per line, or
// in an array. It names each event by its document's type if the server does not, as Anthropic's SDK
// requires.
type stream struct {
	body    io.ReadCloser
	in      *bufio.Reader
	labeled bool // as a stream of events
	began   bool
	// documents is set if the body has no events.
	documents *json.Decoder
	budget    int // bytes left of the current document
	numbers   numbers
	// afterCR means that the last line ended with a carriage return: a line feed after it is a part of
	// that line ending.
	afterCR bool
	ready   []byte
	// held is a line that begins the next event, because the event before it had no empty line.
	held  []byte
	found bool // an event was passed on
	err   error
}

func newStream(body io.ReadCloser, labeled bool) *stream {
	return &stream{body: body, in: bufio.NewReaderSize(body, 16<<10), labeled: labeled}
}

// Read returns ErrTooLong for an event that is too long, and ErrNoStream for a body without events
// that is not labelled as a stream.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		s.next()
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// Close ends the request.
func (s *stream) Close() error { return s.body.Close() }

// next prepares an event, or sets the error.
func (s *stream) next() {
	if !s.began {
		s.began = true
		s.err = s.begin()
	}
	switch {
	case s.err != nil:
	case s.documents != nil:
		s.nextDocument()
	default:
		s.nextEvent()
	}
	if errors.Is(s.err, io.EOF) && !s.found && !s.labeled {
		s.err = ErrNoStream
	}
}

var byteOrderMark = []byte("\ufeff") //nolint:gochecknoglobals // a constant

// begin skips a byte order mark and white space, and finds the form of the body.
func (s *stream) begin() error {
	if mark, _ := s.in.Peek(len(byteOrderMark)); bytes.Equal(mark, byteOrderMark) {
		_, _ = s.in.Discard(len(mark)) // they were peeked
	}
	for {
		first, err := s.in.Peek(1)
		if err != nil {
			return err
		}
		switch first[0] {
		case ' ', '\t', '\r', '\n':
			_, _ = s.in.Discard(1) // it was peeked
			continue
		case '<': // a page
			return ErrNoStream
		case '{', '[':
			s.budget = maxEvent
			s.documents = json.NewDecoder(readerFunc(s.readDocument))
			if first[0] == '[' {
				_, err = s.documents.Token()
			}
		}
		return err
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// readDocument limits what the decoder buffers of one document.
func (s *stream) readDocument(p []byte) (int, error) {
	if s.budget <= 0 {
		return 0, ErrTooLong
	}
	n, err := s.in.Read(p)
	s.budget -= n
	s.numbers.mend(p[:n], s.in)
	return n, err
}

// nextDocument passes on a document. The end of the body is the end of the answer.
func (s *stream) nextDocument() {
	var doc json.RawMessage
	switch err := s.documents.Decode(&doc); {
	case err == nil:
		s.budget = maxEvent
		s.pass("", bytes.ReplaceAll(doc, []byte("\n"), []byte(" "))) // a line break can only be between tokens
	case errors.Is(err, io.EOF), s.found && !s.documents.More():
		s.err = io.EOF
		s.pass("", []byte("[DONE]"))
	default:
		s.err = err
	}
}

// nextEvent passes on the next event that has data.
func (s *stream) nextEvent() {
	var e event
	if s.held != nil {
		e.add(s.held)
		s.held = nil
	}
	for {
		line, err := s.line()
		if err == nil && e.hasData() && (len(line) == 0 || e.endsBefore(line)) {
			if len(line) > 0 {
				s.held = bytes.Clone(line)
			}
			if !e.isKeepAlive() {
				s.pass(e.name, e.data)
				return
			}
			e = event{}
			if s.held != nil {
				e.add(s.held)
				s.held = nil
			}
			continue
		}
		e.add(line)
		if len(e.data) > maxEvent {
			s.err = ErrTooLong
			return
		}
		if err != nil {
			if errors.Is(err, io.EOF) && e.hasData() && !e.isKeepAlive() {
				s.pass(e.name, e.data)
			}
			s.err = err
			return
		}
	}
}

// line reads a line without its line ending, which is a line feed, a carriage return, or both. It does not
// wait for what follows the line ending.
func (s *stream) line() ([]byte, error) {
	var long []byte
	for {
		if _, err := s.in.Peek(1); err != nil {
			return long, err
		}
		part, _ := s.in.Peek(s.in.Buffered()) // they are buffered
		if s.afterCR {
			if s.afterCR = false; part[0] == '\n' {
				_, _ = s.in.Discard(1)
				continue
			}
		}
		end := lineEnd(part)
		if end == len(part) {
			long = append(long, part...)
			_, _ = s.in.Discard(len(part))
			if len(long) > maxEvent {
				return nil, ErrTooLong
			}
			continue
		}
		s.afterCR = part[end] == '\r'
		_, _ = s.in.Discard(end + 1)
		if long == nil { // usual case: the line fits the buffer
			return part[:end], nil
		}
		return append(long, part[:end]...), nil
	}
}

// lineEnd returns the offset of the first line feed or carriage return, else the length.
func lineEnd(b []byte) int {
	if at := bytes.IndexByte(b, '\n'); at >= 0 {
		b = b[:at]
	}
	if at := bytes.IndexByte(b, '\r'); at >= 0 {
		return at
	}
	return len(b)
}

// event is an event of a stream.
type event struct {
	name string
	data []byte
	// bare means that the event is a document without a field name: some front ends send errors in
	// this form.
	bare bool
}

func (e *event) hasData() bool { return len(bytes.TrimSpace(e.data)) > 0 }

// isKeepAlive reports whether an event only keeps the connection open: a word, any text that is named so, or a
// comment that a proxy has put into the data.
func (e *event) isKeepAlive() bool {
	data := bytes.TrimSpace(e.data)
	if e.name == "error" || len(data) == 0 {
		return false
	}
	return data[0] == ':' || isKeepAlive([]byte(e.name)) && data[0] != '{' ||
		isKeepAlive(data) || string(data) == "null" || len(bytes.Trim(data, "\"[]")) == 0
}

// isKeepAlive reports whether a word means that the connection is kept open.
func isKeepAlive(word []byte) bool {
	const longest = len(`"[keep-alive]"`)
	if len(word) > longest {
		return false
	}
	switch strings.ToLower(string(bytes.Trim(word, "\"[]<>"))) {
	case "ping", "pong", "keep-alive", "keepalive", "keep_alive", "heartbeat":
		return true
	}
	return false
}

// endsBefore reports whether a line begins another event, although no empty line ended this one: its
// data is complete.
func (e *event) endsBefore(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte(":"))
	switch string(name) {
	case "data", "event":
		return !e.bare && (isWhole(e.data) || string(e.data) == "[DONE]")
	}
	return false
}

// isWhole reports whether data is a JSON document, also with NaN in it.
func isWhole(data []byte) bool {
	if json.Valid(data) {
		return true
	}
	if !hasNotFinite(data) {
		return false
	}
	mended := bytes.Clone(data)
	new(numbers).mend(mended, nil)
	return json.Valid(mended)
}

// add adds a line. An empty one ends an event without data, and is ignored at the end of the stream.
// Space and a byte order mark before a line, capitals in its name and a name that a proxy repeated mean
// nothing.
func (e *event) add(line []byte) {
	if !e.bare {
		line = bytes.TrimLeft(line, " \t\ufeff")
	}
	if len(line) == 0 {
		if !e.hasData() {
			*e = event{}
		}
		return
	}
	e.bare = e.bare || len(e.data) == 0 && line[0] == '{'
	value := line
	if !e.bare {
		var name []byte
		name, value, _ = bytes.Cut(line, []byte(":"))
		switch {
		case bytes.EqualFold(name, []byte("data")):
		case bytes.EqualFold(name, []byte("error")) && bytes.Contains(value, []byte(`"message"`)): // of older llama.cpp
			e.name = "error"
		case bytes.EqualFold(name, []byte("event")):
			e.name = string(bytes.TrimSpace(value))
			return
		default: // a comment or an unused field
			return
		}
		if again, ok := bytes.CutPrefix(bytes.TrimLeft(value, " "), []byte("data:")); ok {
			value = again
		}
	}
	if len(e.data) > 0 {
		e.data = append(e.data, ' ') // a line break between tokens
	}
	e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
}

// pass makes an event ready to be read.
func (s *stream) pass(name string, data []byte) {
	s.found = true
	new(numbers).mend(data, nil)
	if name == "" {
		name = typeOf(data)
	}
	if name != "" {
		s.ready = append(append(append(s.ready, "event: "...), name...), '\n')
	}
	s.ready = append(append(append(s.ready, "data: "...), data...), "\n\n"...)
}

// typeOf returns the member type of a document, if it can name an event. An error may have none.
func typeOf(doc []byte) (name string) {
	if bytes.Contains(doc, []byte(`"type"`)) {
		raw, _ := strictjson.Member(doc, "type")
		if json.Unmarshal(raw, &name) == nil && name != "" && !strings.ContainsAny(name, "\r\n") {
			return name
		}
	}
	if bytes.Contains(doc, []byte(`"error"`)) {
		if raw, ok := strictjson.Member(doc, "error"); ok && string(raw) != "null" {
			return "error"
		}
	}
	return ""
}
