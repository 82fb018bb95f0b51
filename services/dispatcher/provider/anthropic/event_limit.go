package anthropic

import (
	"errors"
	"io"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/option"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// errEvent ends a stream with an event that is too long.
var errEvent = errors.New("an event of the stream is too long")

// maxEventBytes limits one event: room for a whole escaped answer.
const maxEventBytes = 2 * provider.MaxAnswerBytes

// boundEvents limits the events that the SDK buffers.
func boundEvents(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(r)
	if err == nil && res.Body != nil && res.StatusCode < http.StatusBadRequest {
		res.Body = &eventBody{ReadCloser: res.Body}
	}
	return res, err
}

// eventBody counts the bytes since the last empty line, which ends an event.
type eventBody struct {
	io.ReadCloser
	size    int
	newline bool
}

// Read returns errEvent if an event is too long.
func (b *eventBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for _, c := range p[:n] {
		b.size++
		switch {
		case c == '\r':
		case c == '\n' && b.newline:
			b.size, b.newline = 0, false
		default:
			b.newline = c == '\n'
		}
	}
	if b.size > maxEventBytes {
		return 0, errEvent
	}
	return n, err
}
