package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/minio/highwayhash"
)

// A record of the server's block files: total length, with the highest bit for headers;
// sequence; instant; length of the subject; subject; what was published; a checksum.
const (
	recordHead  = 22
	checksum    = highwayhash.Size64
	headersBit  = 1 << 31
	longest     = 32 << 20 // the server takes no longer one for a record
	blockSuffix = ".blk"
)

// mend keeps the server from cutting off a stream behind a flipped bit.
//
// A server that was killed reads its files again, and ends a file where a checksum does not
// fit, as if a write had been torn there: all that was acknowledged behind it is gone. Within
// a file, before other records, no write was torn. Such a record gets the checksum of what it
// holds now. That its content is wrong is found by those who read it, by hashes of their own,
// and one run is lost instead of all that came after it. So this is for streams with such
// hashes alone.
func mend(dir string, streams []string, log *slog.Logger) error {
	for _, stream := range streams {
		folder := filepath.Join(dir, "jetstream", "$G", "streams", stream, "msgs")
		files, err := filepath.Glob(strings.ReplaceAll(folder, "$", "[$]") + "/*" + blockSuffix)
		if err != nil {
			return err
		}
		index, err := os.Stat(filepath.Join(folder, "index.db"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, file := range files {
			st, err := os.Stat(file)
			if err != nil {
				return err
			}
			if index != nil && !st.ModTime().After(index.ModTime()) {
				continue // the server trusts what it wrote about it when it was stopped
			}
			if err := mendFile(file, stream, log); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

func mendFile(file, stream string, log *slog.Logger) error {
	number, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), blockSuffix))
	if err != nil {
		return nil //nolint:nilerr // not the server's
	}
	buf, err := os.ReadFile(file) //nolint:gosec // G304: in the data directory
	if err != nil {
		return err
	}
	b := newBlock(buf, stream, number)
	damaged, err := b.mend()
	if err != nil || len(damaged) == 0 {
		return err
	}
	log.Error("a file of the log is damaged: records are kept although their content is wrong, and their runs are quarantined when they are read",
		"file", file, "offsets", damaged)
	f, err := os.OpenFile(file, os.O_WRONLY, 0) //nolint:gosec // G304: in the data directory
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b.buf, 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// block is the content of a file.
type block struct {
	buf []byte
	key [sha256.Size]byte
}

func newBlock(buf []byte, stream string, number int) *block {
	return &block{buf: buf, key: sha256.Sum256(fmt.Appendf(nil, "%s-%d", stream, number))}
}

// mend makes all records fit their checksums that others follow, and gives the offsets of
// those that did not.
func (b *block) mend() (damaged []int, err error) {
	for at := 0; at < len(b.buf); {
		size := b.size(at)
		if size > 0 && b.fits(at, size) {
			at += size
			continue
		}
		next := b.next(at)
		if next == 0 {
			return damaged, nil // a torn write, or one that nobody can tell from it
		}
		damaged = append(damaged, at)
		if size != next-at { // its length is what is wrong
			length := uint32(next-at) | binary.LittleEndian.Uint32(b.buf[at:])&headersBit //nolint:gosec // G115: a block is small
			binary.LittleEndian.PutUint32(b.buf[at:], length)
			if b.size(at) == 0 {
				return nil, fmt.Errorf("the record at %d cannot be told from its neighbours: restore the log from a backup", at)
			}
		}
		copy(b.buf[next-checksum:next], b.sum(at, next-at))
		at = next
	}
	return damaged, nil
}

// size is the length of the record at an offset as it says itself; 0: there can be none.
func (b *block) size(at int) int {
	if at+recordHead+checksum > len(b.buf) {
		return 0
	}
	head := b.buf[at:]
	size := int(binary.LittleEndian.Uint32(head) &^ headersBit)
	subject := int(binary.LittleEndian.Uint16(head[20:]))
	if binary.LittleEndian.Uint32(head)&headersBit != 0 {
		subject += 4
	}
	if size < recordHead+subject+checksum || size > longest || at+size > len(b.buf) {
		return 0
	}
	return size
}

// fits reports that a record is as it was written.
func (b *block) fits(at, size int) bool {
	return bytes.Equal(b.sum(at, size), b.buf[at+size-checksum:at+size])
}

// sum is the checksum of what a record holds.
func (b *block) sum(at, size int) []byte {
	h, err := highwayhash.NewDigest64(b.key[:])
	if err != nil {
		return nil // the key has the right length
	}
	head, data := b.buf[at:], b.buf[at+recordHead:at+size-checksum]
	subject := int(binary.LittleEndian.Uint16(head[20:]))
	_, _ = h.Write(head[4:20])
	_, _ = h.Write(data[:subject])
	if binary.LittleEndian.Uint32(head)&headersBit != 0 {
		subject += 4
	}
	_, _ = h.Write(data[subject:])
	return h.Sum(nil)
}

// next is the offset of the next whole record after the one at an offset; 0: none follows.
func (b *block) next(at int) int {
	for to := at + recordHead + checksum; to < len(b.buf); to++ {
		if size := b.size(to); size > 0 && b.fits(to, size) {
			return to
		}
	}
	return 0
}
