package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/minio/highwayhash"
)

// A record in the server's block files: total length with the highest bit for headers, sequence,
// time, length of the subject, subject, length of the headers, headers, message, checksum. The
// checksum covers neither the lengths nor their bit.
const (
	recordHead = 22
	atSequence = 4
	atSubject  = 20
	checksum   = highwayhash.Size64
	headersBit = 1 << 31
	longest    = 32 << 20 // the server accepts no longer record
	// The bits of a sequence that mark a deleted message, and the note of a deletion. Such records
	// have no subject.
	deletedBit  = 1 << 63
	noteBit     = 1 << 62
	blockSuffix = ".blk"
	// farthest is how far apart the sequences of two records in a file may plausibly be.
	farthest = 1 << 32
)

// block is the content of a block file.
type block struct {
	buf    []byte
	stream string
	layout Layout
	hash   hash.Hash
	sums   [checksum]byte
}

func newBlock(buf []byte, stream string, number int, layout Layout) *block {
	return &block{
		buf: buf, stream: stream, layout: layout,
		hash: keyedHash(fmt.Sprintf("%s-%d", stream, number)),
	}
}

// keyedHash is the hash by which the server finds damage in its files. The key is derived from the
// name of what is in the file.
func keyedHash(name string) hash.Hash {
	key := sha256.Sum256([]byte(name))
	h, err := highwayhash.New64(key[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	return h
}

func (b *block) length(at int) (n int, headers bool) {
	v := binary.LittleEndian.Uint32(b.buf[at:])
	return int(v &^ headersBit), v&headersBit != 0
}

func (b *block) setLength(at, n int, headers bool) {
	v := uint32(n) //nolint:gosec // G115: a block is small
	if headers {
		v |= headersBit
	}
	binary.LittleEndian.PutUint32(b.buf[at:], v)
}

func (b *block) rawSequence(at int) uint64 {
	return binary.LittleEndian.Uint64(b.buf[at+atSequence:])
}

// sequence returns the sequence of a record, or of the message that it deletes.
func (b *block) sequence(at int) uint64 { return b.rawSequence(at) &^ (deletedBit | noteBit) }

// message reports whether a record is a message, and not a deleted one or the note of a deletion.
func (b *block) message(at int) bool {
	seq := b.rawSequence(at)
	return seq != 0 && seq&(deletedBit|noteBit) == 0
}

// size returns the length that the record at an offset states; 0 if it is impossible.
func (b *block) size(at int) int {
	if at+recordHead+checksum > len(b.buf) {
		return 0
	}
	size, headers := b.length(at)
	subject := int(binary.LittleEndian.Uint16(b.buf[at+atSubject:]))
	if headers {
		subject += 4
	}
	if size < recordHead+subject+checksum || size > longest || at+size > len(b.buf) {
		return 0
	}
	return size
}

// sound reports whether a record has the stated size, matches its checksum, and has a subject and
// headers, which the checksum does not delimit, that can be there.
func (b *block) sound(at, size int) bool {
	return b.size(at) == size && b.shaped(at, size) && b.fits(at, size)
}

// fits reports whether a record matches its checksum.
func (b *block) fits(at, size int) bool {
	return bytes.Equal(b.sum(at, size), b.buf[at+size-checksum:at+size])
}

// sum returns the checksum of a record's content. It is valid until the next call.
func (b *block) sum(at, size int) []byte {
	head, data := b.buf[at:], b.buf[at+recordHead:at+size-checksum]
	subject := int(binary.LittleEndian.Uint16(head[atSubject:]))
	b.hash.Reset()
	_, _ = b.hash.Write(head[atSequence:atSubject])
	_, _ = b.hash.Write(data[:subject])
	if _, headers := b.length(at); headers {
		subject += 4
	}
	_, _ = b.hash.Write(data[subject:])
	return b.hash.Sum(b.sums[:0])
}

// shaped reports whether the subject, headers and value of a record of a possible size can be there.
func (b *block) shaped(at, size int) bool {
	if !b.message(at) {
		return true
	}
	subject, rest := b.parts(at, size)
	if _, headers := b.length(at); headers {
		n := int(binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
		if n > len(rest) || !bytes.HasPrefix(rest[:n], []byte("NATS/1.0")) || !bytes.HasSuffix(rest[:n], []byte("\r\n\r\n")) {
			return false
		}
		rest = rest[n:]
	}
	return b.layout.Record(b.stream, string(subject), rest).Valid
}

// parts returns the subject of a record of a possible size, and what follows it.
func (b *block) parts(at, size int) (subject, rest []byte) {
	data := b.buf[at+recordHead : at+size-checksum]
	n := int(binary.LittleEndian.Uint16(b.buf[at+atSubject:]))
	return data[:n], data[n:]
}

// next returns the offset of the next sound record after the one at an offset; 0 if none follows.
// last is the sequence before the offset.
func (b *block) next(at int, last uint64) int {
	for to := at + recordHead + checksum; to < len(b.buf); to++ {
		size := b.size(to)
		if size == 0 || b.sequence(to) > last+farthest || b.message(to) && b.sequence(to) <= last {
			continue
		}
		if b.sound(to, size) {
			return to
		}
	}
	return 0
}
