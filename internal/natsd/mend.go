package natsd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// mender puts damaged files right before the server reads them.
//
// The server does not expect damage inside a file. At a wrong checksum it cuts the file off, with
// all acknowledged records after it; a consumer stops there; and a high bit in a sequence is taken
// for billions of deleted messages, each of which it notes in memory. So every record is checked
// against its checksum first. A flipped bit is found by trying each, which also distinguishes it from a torn
// write. What cannot be repaired is set aside, and its record stays without content, or goes, so
// that the records around it are served. See docs/adr/0043.
type mender struct {
	dir     string // of the streams
	layout  Layout
	journal *journal
	all     bool // check all files now

	mu   sync.Mutex // guards the fields below
	left int        // of work
	size int64      // of the block files
	rest []blockFile
	// stale are the streams whose index does not fit their blocks any more.
	stale map[string]bool
}

// blockFile is a block file of a stream.
type blockFile struct {
	stream string
	number int
	newest bool
	size   int64
}

func (f blockFile) path(dir string) string {
	return newFolder(filepath.Join(dir, f.stream), nil).block(f.number)
}

// soon is how many bytes of files that the server wrote nothing to since it last stopped are checked
// before it starts: the work of a fraction of a second. The others are checked while it runs.
const soon = 128 << 20

func newMender(storeDir string, layout Layout, j *journal) *mender {
	return &mender{dir: streamsDir(storeDir), layout: layout, journal: j, left: work, stale: map[string]bool{}}
}

// mend checks the files of all streams.
func (m *mender) mend(ctx context.Context) error {
	streams, err := os.ReadDir(m.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var now []blockFile
	trusted := int64(0)
	for _, s := range streams {
		if !s.IsDir() || strings.HasPrefix(s.Name(), ".") {
			continue
		}
		if err := m.config(s.Name()); err != nil {
			return err
		}
		files, changed, err := m.blocks(s.Name())
		if err != nil {
			return err
		}
		for i, f := range files {
			m.size += f.size
			if !changed[i] && !f.newest && !m.all {
				if trusted += f.size; trusted > soon {
					m.rest = append(m.rest, f)
					continue
				}
			}
			now = append(now, f)
		}
	}
	return m.check(ctx, now)
}

// blocks lists the block files of a stream, the newest first, and whether the server may have written
// to each since it noted their state in its index.
func (m *mender) blocks(stream string) (files []blockFile, changed []bool, err error) {
	folder := filepath.Join(m.dir, stream, "msgs")
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	index, err := os.Stat(filepath.Join(folder, indexFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(blockNumber(b.Name()), blockNumber(a.Name())) })
	for _, e := range entries {
		n := blockNumber(e.Name())
		if n == 0 {
			continue
		}
		st, err := e.Info()
		if err != nil {
			return nil, nil, err
		}
		files = append(files, blockFile{stream: stream, number: n, newest: len(files) == 0, size: st.Size()})
		changed = append(changed, index == nil || st.ModTime().After(index.ModTime()))
	}
	return files, changed, nil
}

// indexFile is where the server notes the state of a stream when it stops. Without it, the server
// reads the blocks.
const indexFile = "index.db"

// The configuration of a stream or consumer, and its checksum.
const (
	configFile = "meta.inf"
	configSum  = "meta.sum"
)

// check checks block files, several at a time.
func (m *mender) check(ctx context.Context, files []blockFile) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, f := range files {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return m.block(f)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for stream := range m.stale {
		if err := os.Remove(filepath.Join(m.dir, stream, "msgs", indexFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// block checks a block file and puts it right.
func (m *mender) block(f blockFile) error {
	path := f.path(m.dir)
	buf, err := os.ReadFile(path) //nolint:gosec // G304: in the data directory
	if err != nil {
		return err
	}
	if f.size = int64(len(buf)); len(buf) == 0 {
		return nil
	}
	b := newBlock(buf, f.stream, f.number, m.layout)
	if b.whole() {
		return nil
	}
	m.mu.Lock() // one at a time, as they share the work
	defer m.mu.Unlock()
	found, cut := b.mend(&m.left)
	if len(found) == 0 {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0) //nolint:gosec // G304: in the data directory
	if err != nil {
		return err
	}
	for _, d := range found {
		d.File = path
		if err = m.journal.add(d.Damage, d.damaged); err != nil {
			break
		}
		if d.Offset == cut {
			err = file.Truncate(int64(cut))
		} else {
			_, err = file.WriteAt(b.buf[d.Offset:d.Offset+d.Bytes], int64(d.Offset))
		}
		if err != nil {
			break
		}
		// Cutting the newest block leaves the index: the server needs the last sequence in it.
		m.stale[f.stream] = m.stale[f.stream] || d.Outcome != Repaired && (!f.newest || d.Offset != cut)
	}
	if !m.stale[f.stream] {
		delete(m.stale, f.stream)
	}
	return errors.Join(err, file.Sync(), file.Close())
}

// config checks the configuration files of a stream and its consumers. The server leaves out a
// stream or a consumer whose file it cannot read, and stops a stream if a consumer's file has a
// member that it does not know.
func (m *mender) config(stream string) error {
	dir := filepath.Join(m.dir, stream)
	if err := m.checkConfig(dir, stream, stream); err != nil {
		return err
	}
	consumers, err := os.ReadDir(filepath.Join(dir, "obs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, c := range consumers {
		at := filepath.Join(dir, "obs", c.Name())
		if err := errors.Join(m.checkConfig(at, stream, stream+"/"+c.Name()), m.checkPosition(at, stream)); err != nil {
			return err
		}
	}
	return nil
}

func (m *mender) checkConfig(dir, stream, name string) error {
	file, sumFile := filepath.Join(dir, configFile), filepath.Join(dir, configSum)
	conf, err := os.ReadFile(file) //nolint:gosec // G304: in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the host creates it
	}
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(sumFile) //nolint:gosec // G304: in the data directory
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	hash := keyedHash(name)
	hexSum := func() string {
		hash.Reset()
		_, _ = hash.Write(conf)
		return hex.EncodeToString(hash.Sum(nil))
	}
	if hexSum() == string(sum) {
		return nil
	}
	was := bytes.Clone(conf)
	d := Damage{Stream: stream, File: file, Bytes: len(conf), Outcome: Repaired, What: "a flipped bit of a configuration was repaired"}
	switch at := flipBack(conf, func() bool { return hexSum() == string(sum) }); {
	case at >= 0:
		d.Offset = at
		return errors.Join(m.journal.add(d, was), os.WriteFile(file, conf, 0o600)) //nolint:gosec // G703: in the data directory
	case json.Valid(conf): // damage of the checksum, or a crash between the writes of both files
		d.File, d.Bytes, d.What = sumFile, len(sum), "the checksum of a configuration was wrong"
		return errors.Join(m.journal.add(d, sum), os.WriteFile(sumFile, []byte(hexSum()), 0o600))
	}
	d.Outcome, d.What = Lost, "a configuration cannot be read, and is made again"
	if err := m.journal.add(d, was); err != nil {
		return err
	}
	err = os.Remove(sumFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(file))
}
