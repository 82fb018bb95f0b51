package backup

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"regexp"
)

// part is the name of a part, after the name of the whole.
var part = regexp.MustCompile(`^(.+)/([0-9]{6,})$`)

// Reader reads the entries of a verified backup in order.
type Reader struct {
	tar    *tar.Reader
	header *tar.Header // the entry that was read ahead
	err    error
}

// NewReader reads a backup that Verify has accepted.
func NewReader(from io.Reader) *Reader {
	r := &Reader{tar: tar.NewReader(from)}
	r.advance()
	return r
}

func (r *Reader) advance() { r.header, r.err = r.tar.Next() }

// Next returns the name of the next entry, without the number of a part, and whether it has parts. Read
// the entry before the next call. io.EOF follows the last one.
func (r *Reader) Next() (name string, parts bool, err error) {
	switch {
	case r.err != nil:
		return "", false, fmt.Errorf("%w: %w", ErrDamaged, r.err)
	case r.header.Name == manifestName:
		return "", false, io.EOF
	}
	if m := part.FindStringSubmatch(r.header.Name); m != nil {
		return m[1], true, nil
	}
	return r.header.Name, false, nil
}

// Document returns the content of an entry.
func (r *Reader) Document() ([]byte, error) {
	doc, err := io.ReadAll(io.LimitReader(r.tar, maxDocument))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	r.advance()
	return doc, nil
}

// Part returns the next part of an entry; io.EOF after the last one.
func (r *Reader) Part(name string) ([]byte, error) {
	next, parts, err := r.Next()
	if errors.Is(err, io.EOF) || err == nil && (next != name || !parts) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	return r.Document()
}
