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

// A record in the server's block files: total length with the highest bit for headers, sequence,
// time, length of the subject, subject, message, checksum.
const (
	recordHead  = 22
	checksum    = highwayhash.Size64
	headersBit  = 1 << 31
	longest     = 32 << 20 // the server accepts no longer record
	blockSuffix = ".blk"
)

// mend keeps the server from truncating a stream at a flipped bit.
//
// After a kill the server reads its files again and ends a file at a wrong checksum, as if that
// write were torn. Every acknowledged record after it is lost. But a record with other records
// after it cannot be torn. mend gives such a record the checksum of its present content. Readers
// detect the wrong content by their own hashes, so one run is lost instead of all later ones.
// Therefore mend is only for streams with such hashes.
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

// mend corrects the checksums of all records before the last one, and returns the offsets of those
// that were wrong.
func (b *block) mend() (damaged []int, err error) {
	for at := 0; at < len(b.buf); {
		size := b.size(at)
		if size > 0 && b.fits(at, size) {
			at += size
			continue
		}
		next := b.next(at)
		if next == 0 {
			return damaged, nil // a torn write, or indistinguishable from one
		}
		damaged = append(damaged, at)
		if size != next-at { // its length is wrong
			length := uint32(next-at) | binary.LittleEndian.Uint32(b.buf[at:])&headersBit //nolint:gosec // G115: a block is small
			binary.LittleEndian.PutUint32(b.buf[at:], length)
			if b.size(at) == 0 {
				return nil, fmt.Errorf("the record at %d cannot be separated from its neighbours: restore the log from a backup", at)
			}
		}
		copy(b.buf[next-checksum:next], b.sum(at, next-at))
		at = next
	}
	return damaged, nil
}

// size returns the length that the record at an offset states; 0 if it is impossible.
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

// fits reports whether a record matches its checksum.
func (b *block) fits(at, size int) bool {
	return bytes.Equal(b.sum(at, size), b.buf[at+size-checksum:at+size])
}

// sum returns the checksum of a record's content.
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

// next returns the offset of the next intact record after the one at an offset; 0 if none follows.
func (b *block) next(at int) int {
	for to := at + recordHead + checksum; to < len(b.buf); to++ {
		if size := b.size(to); size > 0 && b.fits(to, size) {
			return to
		}
	}
	return 0
}
