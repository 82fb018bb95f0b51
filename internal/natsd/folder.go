package natsd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// syncer puts files, and the names in a folder, on the disk.
type syncer interface {
	file(f *os.File) error
	folder(path string) error
}

type onDisk struct{}

// errUnsynced says that the system could not put on the disk what was written.
var errUnsynced = errors.New("sync")

func (onDisk) file(f *os.File) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("%w: %w", errUnsynced, err)
	}
	return nil
}

func (onDisk) folder(path string) error {
	if runtime.GOOS == "windows" { // where a folder cannot be synced, and need not be
		return nil
	}
	f, err := os.Open(path) //nolint:gosec // G304: in the data directory
	if err != nil {
		return err
	}
	return errors.Join(onDisk{}.file(f), f.Close())
}

// folder are the files of a stream. A record is appended to the newest block of the folder msgs: the
// file with the highest number. Blocks before that change only when the server rewrites
// them, under a new file of the same name. What is beside them the server writes now and then.
type folder struct {
	dir  string
	sync syncer

	mu sync.Mutex // guards what follows
	// last is the newest block, number its number.
	last   *os.File
	number int
	// seen is when the names in msgs changed last, as far as they are known; zero: to be looked at.
	seen   time.Time
	blocks stamps
	closed bool
	// failed is the sync that has failed. Nothing is kept after it: see tail.failed.
	failed error

	restMu sync.Mutex // guards what follows, so that records do not wait for it
	rest   stamps
}

// stamps are files that were synced, by their paths, and what they were like.
type stamps map[string]stamp

// stamp tells a file from one that was written since.
type stamp struct {
	size    int64
	written time.Time
}

func stampOf(st fs.FileInfo) stamp { return stamp{st.Size(), st.ModTime()} }

func newFolder(dir string, s syncer) *folder {
	return &folder{dir: dir, sync: s, blocks: stamps{}, rest: stamps{}}
}

func (f *folder) msgs() string { return filepath.Join(f.dir, "msgs") }

// tick is longer than a file system takes one instant for another. A folder that changed so
// shortly before it was read may have changed after, and look the same.
const tick = 50 * time.Millisecond

// syncBlocks has all records that were written before the call on the disk.
func (f *folder) syncBlocks() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.once(f.syncNewest)
}

// once syncs, unless a sync has failed before. The lock is held.
func (f *folder) once(sync func() error) error {
	switch {
	case f.closed:
		return errDown
	case f.failed != nil:
		return f.failed
	}
	err := sync()
	if errors.Is(err, errUnsynced) {
		f.failed = err
	}
	return err
}

// syncNewest is syncBlocks. The lock is held.
func (f *folder) syncNewest() error {
	if f.last == nil {
		return f.begin()
	}
	// Also where others have followed it: those who had a file open are told that it could not be written.
	if err := f.sync.file(f.last); err != nil {
		return err
	}
	return f.syncChanged()
}

// syncChanged syncs what the server has put beside the newest block, or in its place. The lock is held.
func (f *folder) syncChanged() error {
	st, err := os.Stat(f.msgs())
	if err != nil || st.ModTime().Equal(f.seen) && !f.moved() {
		return err
	}
	return f.syncNames(st.ModTime())
}

// moved reports that the server writes to another file by now, also where the file system's
// instants are too coarse to show it. The lock is held.
func (f *folder) moved() bool {
	if _, err := os.Stat(f.block(f.number + 1)); !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	there, err := os.Stat(f.block(f.number))
	if err != nil {
		return true
	}
	held, err := f.last.Stat()
	return err != nil || !os.SameFile(there, held)
}

func (f *folder) block(number int) string {
	return filepath.Join(f.msgs(), strconv.Itoa(number)+blockSuffix)
}

// begin syncs all there is of a stream, and that it is there. The lock is held.
func (f *folder) begin() error {
	st, err := os.Stat(f.msgs())
	if err != nil {
		return err
	}
	err = errors.Join(f.syncNames(st.ModTime()), f.syncRest())
	for dir, depth := f.dir, 0; depth < 6; dir, depth = filepath.Dir(dir), depth+1 { // up to that of the server's own
		err = errors.Join(err, f.sync.folder(dir))
	}
	if err != nil {
		f.release() // the next sync begins, too
	}
	return err
}

// syncNames syncs the newest block, all that are not known, and their names. The lock is held.
func (f *folder) syncNames(changed time.Time) error {
	looked := time.Now()
	entries, err := os.ReadDir(f.msgs())
	if err != nil {
		return err
	}
	newest := 0
	for _, e := range entries {
		newest = max(newest, blockNumber(e.Name()))
	}
	if newest == 0 {
		return fmt.Errorf("%s: no block of the stream: %w", f.msgs(), fs.ErrNotExist)
	}
	for _, e := range entries {
		if n := blockNumber(e.Name()); n == 0 || n == newest || n < f.number && f.blocks.has(filepath.Join(f.msgs(), e.Name()), e) {
			continue
		}
		if err := f.blocks.sync(f.sync, filepath.Join(f.msgs(), e.Name())); err != nil {
			return err
		}
	}
	last, err := os.OpenFile(f.block(newest), os.O_RDWR, 0) //nolint:gosec // G304: in the data directory
	if err != nil {
		return err
	}
	if err := errors.Join(f.sync.file(last), f.sync.folder(f.msgs())); err != nil {
		return errors.Join(err, last.Close())
	}
	f.release()
	f.last, f.number, f.seen = last, newest, changed
	if looked.Sub(changed) < tick {
		f.seen = time.Time{}
	}
	return nil
}

// has reports that a file was not written since it was synced.
func (s stamps) has(path string, e fs.DirEntry) bool {
	st, err := e.Info()
	return err == nil && s[path] == stampOf(st)
}

// sync syncs a file, unless it is gone.
func (s stamps) sync(to syncer, path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // G304: in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		delete(s, path)
		return nil
	}
	if err != nil {
		return err
	}
	st, err := file.Stat() // before it is synced: what is written meanwhile is synced again
	if err := errors.Join(err, to.file(file), file.Close()); err != nil {
		return err
	}
	s[path] = stampOf(st)
	return nil
}

// blockNumber is that of a block's file; 0: the file is another one.
func blockNumber(name string) int {
	number, is := strings.CutSuffix(name, blockSuffix)
	n, err := strconv.Atoi(number)
	if !is || err != nil {
		return 0
	}
	return n
}

// settle has on the disk what was written beside the newest block.
func (f *folder) settle() error {
	rest := f.syncRest()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.once(func() error {
		if rest != nil || f.last == nil {
			return rest
		}
		return f.syncChanged()
	})
}

// syncRest syncs what is no block, where it was written since.
func (f *folder) syncRest() error {
	f.restMu.Lock()
	defer f.restMu.Unlock()
	changed := map[string]bool{}
	err := filepath.WalkDir(f.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // files come and go
			return nil
		case err != nil:
			return err
		case e.IsDir() && path == f.msgs():
			return fs.SkipDir
		case e.IsDir():
			if _, known := f.rest[path]; !known {
				changed[filepath.Dir(path)], f.rest[path] = true, stamp{}
			}
			return nil
		case f.rest.has(path, e):
			return nil
		}
		changed[filepath.Dir(path)] = true
		return f.rest.sync(f.sync, path)
	})
	errs := []error{err}
	for dir := range changed {
		if err := f.sync.folder(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		clear(f.rest) // all of it again, with the names
		return err
	}
	return nil
}

func (f *folder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.release()
}

// release closes the newest block. The lock is held.
func (f *folder) release() {
	if f.last != nil {
		_ = f.last.Close() // nothing was written to it here
		f.last = nil
	}
}
