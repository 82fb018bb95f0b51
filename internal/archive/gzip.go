package archive

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// Pack compresses a document.
func Pack(doc []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(doc)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress the archive: %w", err)
	}
	return out.Bytes(), nil
}

// Packed reports whether a file begins as a compressed document.
func Packed(file []byte) bool { return bytes.HasPrefix(file, []byte{0x1f, 0x8b}) }

// Unpack returns the document of a file, which may be uncompressed. Errors: *DamagedError.
func Unpack(file []byte) ([]byte, error) {
	if len(file) == 0 {
		return nil, damaged("", "the file is empty")
	}
	if len(file) > MaxBytes {
		return nil, damaged("", "larger than %d bytes, the limit of an archive", MaxBytes)
	}
	if !Packed(file) {
		return file, nil
	}
	from := bytes.NewReader(file)
	r, err := gzip.NewReader(from)
	if err != nil {
		return nil, broken(from, len(file), 0, err)
	}
	doc, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, broken(from, len(file), len(doc), err)
	}
	if len(doc) > MaxBytes {
		return nil, damaged("", "larger than %d bytes without compression, the limit of an archive", MaxBytes)
	}
	return doc, nil
}

func broken(from *bytes.Reader, size, read int, err error) error {
	where := fmt.Sprintf("byte %d", size-from.Len())
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return damaged("", "truncated: it ends after %d bytes, of which %d bytes of the document could be read", size, read)
	case errors.Is(err, gzip.ErrChecksum):
		return damaged("", "damaged: the checksum of its content does not match")
	default:
		return damaged(where, "damaged: %s", err.Error())
	}
}

// Read unpacks and checks a file. Errors: *DamagedError.
func Read(file []byte) (*Archive, error) {
	doc, err := Unpack(file)
	if err != nil {
		return nil, err
	}
	return Open(doc)
}
