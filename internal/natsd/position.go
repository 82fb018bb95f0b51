package natsd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// positionFile is where the server stores the position of a consumer. It has no checksum.
const positionFile = "o.dat"

// checkPosition sets the position of a consumer aside if the server could not read it, which would
// end the start of the host. The consumer starts over.
func (m *mender) checkPosition(dir, stream string) error {
	path := filepath.Join(dir, positionFile)
	b, err := os.ReadFile(path) //nolint:gosec // G304: in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(b) == 0 || positionReadable(b) {
		return err
	}
	d := Damage{Outcome: Lost, Stream: stream, File: path, Bytes: len(b), What: "the position of a consumer cannot be read: it starts over"}
	return errors.Join(m.journal.add(d, b), os.Remove(path))
}

// positionReadable reports whether the server reads a position: a magic byte and a version, then
// numbers. These are the last acknowledged and delivered sequences, each of the consumer and the
// stream, and lists of the messages that are pending and redelivered.
func positionReadable(b []byte) bool {
	const magic = 22
	if len(b) < 2 || b[0] != magic || b[1] != 1 && b[1] != 2 {
		return false
	}
	r := bytes.NewReader(b[2:])
	var bad bool
	next := func() uint64 {
		n, err := binary.ReadUvarint(r)
		bad = bad || err != nil
		return n
	}
	_, acknowledged, _, delivered := next(), next(), next(), next()
	if bad || acknowledged > delivered || delivered >= noteBit {
		return false
	}
	items := func(n uint64, numbers int) bool {
		for ; n > 0 && !bad; n-- {
			for range numbers {
				_ = next() // signed numbers have the same form
			}
		}
		return !bad
	}
	pending := next()
	if bad { // nothing follows
		return true
	}
	if pending > 0 {
		_ = next() // the earliest time
	}
	if !items(pending, int(b[1])+1) {
		return false
	}
	redelivered := next()
	return bad || items(redelivered, 2)
}
