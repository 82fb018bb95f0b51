package redact

import (
	"bytes"
	"compress/flate"
	"io"
	"sync"
)

// Compressed data in a text is encoded, mostly as base64. It is searched if the run begins with it.

// maxInflated limits what is read of one compressed part.
const maxInflated = 1 << 20

// flates are readers that can be used again: a new one takes 40 KB.
var flates = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// deflated returns the deflate stream (RFC 1951) in data of gzip (RFC 1952) or zlib (RFC 1950); nil
// for other data.
func deflated(data []byte) []byte {
	const deflate, gzipHeader, zlibHeader = 8, 10, 2
	switch {
	case len(data) > gzipHeader && data[0] == 0x1F && data[1] == 0x8B && data[2] == deflate:
		return skipGzipFields(data[gzipHeader:], data[3])
	case len(data) > zlibHeader && data[0]&0x0F == deflate && data[0] <= 0x78 && (int(data[0])<<8|int(data[1]))%31 == 0 && data[1]&0x20 == 0:
		return data[zlibHeader:]
	}
	return nil
}

// skipGzipFields skips the optional fields of a header: extra, name, comment, checksum.
func skipGzipFields(data []byte, flags byte) []byte {
	if flags&4 != 0 {
		if len(data) < 2 {
			return nil
		}
		data = data[min(2+(int(data[0])|int(data[1])<<8), len(data)):]
	}
	for _, field := range []byte{8, 16} {
		if flags&field != 0 {
			n := bytes.IndexByte(data, 0)
			data = data[n+1:]
			if n < 0 {
				return nil
			}
		}
	}
	if flags&2 != 0 {
		data = data[min(2, len(data)):]
	}
	return data
}

// inflate returns the start of the data in a deflate stream, which may be damaged or incomplete.
func inflate(stream []byte, limit int) []byte {
	r, ok := flates.Get().(io.ReadCloser)
	if !ok {
		return nil
	}
	defer flates.Put(r)
	if again, ok := r.(flate.Resetter); !ok || again.Reset(bytes.NewReader(stream), nil) != nil {
		return nil
	}
	var out bytes.Buffer
	_, _ = io.Copy(&out, io.LimitReader(r, int64(limit))) // what was read is searched
	return out.Bytes()
}

// searchCompressed records a whole run if its decoded bytes are compressed data with a match: no part
// of it stands for the secret alone.
func (ks *knownScan) searchCompressed(data []byte, whole knownMatch) {
	stream, b := deflated(data), ks.layers()
	limit := min(maxInflated, b.inflate+b.call.inflate)
	if stream == nil || limit <= 0 {
		return
	}
	text := inflate(stream, limit)
	own := min(len(text), b.inflate)
	b.inflate -= own
	b.call.inflate -= len(text) - own
	if found := ks.searchWithin(text); len(found) > 0 {
		whole.pattern = found[0].pattern
		ks.addWhole(whole)
	}
}
