package rest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/admission"
)

// A body gets memory as it arrives, so a caller that announces a large body and sends nothing uses
// none.
const (
	// firstBytes of a body are read before it is counted.
	firstBytes = 4 << 10
	// growth is the factor by which the memory of a body grows.
	growth = 4
	// serious is how much of a body must have arrived before it gets memory for all that it
	// announced.
	serious = 64 << 10
)

// receive reads the body into memory that the caller's share has room for.
func (h *Handler) receive(r *http.Request) ([]byte, error) {
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, fault.New(fault.ValidationError, "Content-Encoding: send the body without one").With("header", "Content-Encoding")
	}
	in := &incoming{held: accountOf(r.Context()), announced: r.ContentLength, limit: h.cfg.MaxBodyBytes}
	switch err := in.read(r.Body); {
	case in.refused != nil:
		return nil, refused{in.refused}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refused{fault.New(fault.ValidationError, "the body arrives too slowly: want %s", h.cfg.Patience).Wrap(err)}
	case err != nil:
		return nil, fault.New(fault.ValidationError, "the body could not be read completely").Wrap(err)
	case int64(len(in.buf)) > h.cfg.MaxBodyBytes:
		return nil, h.tooLarge()
	}
	return in.buf, nil
}

// incoming is a body that is being read.
type incoming struct {
	held *admission.Account
	// announced is its length; negative if it is unknown.
	announced int64
	limit     int64
	buf       []byte
	counted   int64 // of buf's memory
	refused   error // there is no room for more
}

// read reads up to one byte more than the limit.
func (b *incoming) read(from io.Reader) error {
	b.buf = make([]byte, 0, b.size(firstBytes))
	for int64(len(b.buf)) <= b.limit {
		if len(b.buf) == cap(b.buf) && !b.grow() {
			return nil
		}
		n, err := from.Read(b.buf[len(b.buf):cap(b.buf)])
		b.buf = b.buf[:len(b.buf)+n]
		if err == io.EOF { //nolint:errorlint // a reader returns it unwrapped
			b.count(int64(len(b.buf)))
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// size limits a size to what the body needs at most. One byte more shows that it ends there.
func (b *incoming) size(n int64) int64 {
	most := b.limit
	if b.announced >= 0 {
		most = min(most, b.announced)
	}
	return min(n, most+1)
}

// grow makes room for more, and counts it.
func (b *incoming) grow() bool {
	size := growth * int64(cap(b.buf))
	if b.announced > 0 && cap(b.buf) >= serious {
		size = b.announced + 1
	}
	size = b.size(size)
	if !b.count(size) {
		return false
	}
	b.buf = append(make([]byte, 0, size), b.buf...)
	return true
}

// count counts the memory of the body.
func (b *incoming) count(n int64) bool {
	if b.refused = b.held.Resize(b.counted, n); b.refused != nil {
		return false
	}
	b.counted = n
	return true
}
