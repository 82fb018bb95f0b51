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

// syncer syncs files and folders.
type syncer interface {
	file(f *os.File) error
	folder(path string) error
}

type onDisk struct{}

// errUnsynced: the system could not sync what was written.
var errUnsynced = errors.New("sync")

func (onDisk) file(f *os.File) error {
	if err := f.Sync(); err != nil {
		return fmt.Errorf("%w: %w", errUnsynced, err)
	}
	return nil
}

func (onDisk) folder(path string) error {
	if runtime.GOOS == "windows" { // Windows cannot sync folders and does not need to
		return nil
	}
	f, err := os.Open(path) //nolint:gosec // G304: in the data directory
	if err != nil {
		return err
	}
	return errors.Join(onDisk{}.file(f), f.Close())
}

// folder is the files of a stream. Records are appended to the newest block in msgs, the file with
// the highest number. Earlier blocks change only when the server replaces them by a new file of the
// same name. Other files are written at times.
type folder struct {
	dir  string
	sync syncer

	mu sync.Mutex // guards the fields below
	// last is the newest block, number its number.
	last   *os.File
	number int
	// seen is the last known change of the names in msgs; zero forces a new read.
	seen   time.Time
	blocks stamps
	closed bool
	// failed is the error of a failed sync, which is final: see tail.failed.
	failed error

	restMu sync.Mutex // guards the fields below, so that records do not wait for it
	rest   stamps
}

// stamps are synced files by path, with their state at that time.
type stamps map[string]stamp

// stamp identifies a state of a file.
type stamp struct {
	size    int64
	written time.Time
}

func stampOf(st fs.FileInfo) stamp { return stamp{st.Size(), st.ModTime()} }

func newFolder(dir string, s syncer) *folder {
	return &folder{dir: dir, sync: s, blocks: stamps{}, rest: stamps{}}
}

func (f *folder) msgs() string { return filepath.Join(f.dir, "msgs") }

// tick is longer than the time resolution of file systems. A folder that changed within it before
// being read may have changed again with the same time.
const tick = 50 * time.Millisecond

// syncBlocks syncs all records written before the call.
func (f *folder) syncBlocks() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.once(f.syncNewest)
}

// once syncs unless an earlier sync failed. The caller holds the lock.
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

// syncNewest is syncBlocks with the lock held.
func (f *folder) syncNewest() error {
	if f.last == nil {
		return f.begin()
	}
	// Needed even if newer blocks exist: the system reports a write error only to files that were
	// open.
	if err := f.sync.file(f.last); err != nil {
		return err
	}
	return f.syncChanged()
}

// syncChanged syncs the files that the server added or replaced. The caller holds the lock.
func (f *folder) syncChanged() error {
	st, err := os.Stat(f.msgs())
	if err != nil || st.ModTime().Equal(f.seen) && !f.moved() {
		return err
	}
	return f.syncNames(st.ModTime())
}

// moved reports whether the server writes to another file now. It also works if the file system's
// times are too coarse. The caller holds the lock.
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

// begin syncs all files and parent folders of a stream. The caller holds the lock.
func (f *folder) begin() error {
	st, err := os.Stat(f.msgs())
	if err != nil {
		return err
	}
	err = errors.Join(f.syncNames(st.ModTime()), f.syncRest())
	for dir, depth := f.dir, 0; depth < 6; dir, depth = filepath.Dir(dir), depth+1 { // up to the server's own folder
		err = errors.Join(err, f.sync.folder(dir))
	}
	if err != nil {
		f.release() // the next sync starts over
	}
	return err
}

// syncNames syncs the newest block, all unknown blocks, and their names. The caller holds the lock.
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

// has reports whether a file is unchanged since its sync.
func (s stamps) has(path string, e fs.DirEntry) bool {
	st, err := e.Info()
	return err == nil && s[path] == stampOf(st)
}

// sync syncs a file, unless it was deleted.
func (s stamps) sync(to syncer, path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // G304: in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		delete(s, path)
		return nil
	}
	if err != nil {
		return err
	}
	st, err := file.Stat() // read before the sync: a later write is synced again
	if err := errors.Join(err, to.file(file), file.Close()); err != nil {
		return err
	}
	s[path] = stampOf(st)
	return nil
}

// blockNumber returns the number of a block's file; 0 for another file.
func blockNumber(name string) int {
	number, is := strings.CutSuffix(name, blockSuffix)
	n, err := strconv.Atoi(number)
	if !is || err != nil {
		return 0
	}
	return n
}

// settle syncs everything except the newest block.
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

// syncRest syncs changed files that are not blocks.
func (f *folder) syncRest() error {
	f.restMu.Lock()
	defer f.restMu.Unlock()
	changed := map[string]bool{}
	err := filepath.WalkDir(f.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted in the meantime
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
		clear(f.rest) // sync everything again, with the names
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

// release closes the newest block. The caller holds the lock.
func (f *folder) release() {
	if f.last != nil {
		_ = f.last.Close() // only read here
		f.last = nil
	}
}
