package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/internal/archive"
)

// Directory is a target in the file system. Only the user of the process may read it.
type Directory string

// partial ends the names of files that are being written.
const partial = ".partial"

// abandoned is how old such a file is when its writer counts as dead. No write lasts that long.
const abandoned = time.Hour

// Put stores a file; see archive.Target.
func (d Directory) Put(_ context.Context, name string, file []byte) error {
	path := d.path(name)
	dir := filepath.Dir(path)
	if err := makeDir(dir); err != nil {
		return d.failure("write", name, err)
	}
	err := writeFile(dir, filepath.Base(path), file)
	if err == nil {
		err = syncDir(dir)
	}
	return d.failure("write", name, err)
}

// writeFile writes a file under another name, and renames it when it is on the disk.
func writeFile(dir, base string, file []byte) (err error) {
	f, err := os.CreateTemp(dir, "."+base+".*"+partial)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(file)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, base)); err != nil {
		return err
	}
	// Processes that died while they wrote the same file have left theirs. Another process may be
	// writing it now.
	left, _ := filepath.Glob(filepath.Join(dir, "."+base+".*"+partial)) // the pattern is valid
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.Remove(path)
		}
	}
	return nil
}

// makeDir creates a directory and its parents. They are on the disk when it returns.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

func syncDir(dir string) error {
	f, err := os.Open(dir) //nolint:gosec // G304: below the operator's directory
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Prepare creates a directory target. A bucket is not created.
func Prepare(to archive.Target) error {
	d, ok := to.(Directory)
	if !ok {
		return nil
	}
	if err := makeDir(string(d)); err != nil {
		return fmt.Errorf("directory %s: %w", d, err)
	}
	f, err := os.CreateTemp(string(d), ".*"+partial)
	if err != nil {
		return fmt.Errorf("directory %s: not writable: %w", d, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Get reads a file; see archive.Target.
func (d Directory) Get(_ context.Context, name string) ([]byte, error) {
	file, err := readFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", archive.ErrNotFound, name)
	}
	return file, d.failure("read", name, err)
}

// readFile reads a file up to one byte more than an archive can have.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // G304: below the operator's or the user's directory
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, archive.MaxBytes+1))
}

// List returns the names of all archives; see archive.Target.
func (d Directory) List(ctx context.Context) (names []string, err error) {
	root := string(d)
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		rel, err := filepath.Rel(root, path)
		if err == nil && e.Type().IsRegular() && strings.HasSuffix(path, archive.Suffix) {
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", d, err)
	}
	slices.Sort(names)
	return names, nil
}

func (d Directory) String() string { return string(d) }

func (d Directory) path(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

func (d Directory) failure(what, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("archive %s: %s %s: %w", d, what, name, err)
}

// file is a target with one file, which is read only.
type file string

// OpenSource opens a target to read it: what Open opens, or a file with one archive.
func OpenSource(ctx context.Context, source string) (archive.Target, error) {
	if err := Check(source); err != nil || InBucket(source) {
		if err != nil {
			return nil, err
		}
		return openBucket(ctx, source)
	}
	switch at, err := os.Stat(source); {
	case err != nil:
		return nil, err
	case at.Mode().IsRegular():
		return file(source), nil
	case !at.IsDir():
		return nil, fmt.Errorf("%s: neither a file nor a directory", source)
	}
	return Directory(source), nil
}

func (f file) Put(context.Context, string, []byte) error {
	return fmt.Errorf("%s: a file is read only; want a directory or s3://BUCKET/PREFIX", string(f))
}

func (f file) Get(context.Context, string) ([]byte, error) {
	return readFile(string(f))
}

func (f file) List(context.Context) ([]string, error) { return []string{filepath.Base(string(f))}, nil }

func (f file) String() string { return string(f) }
