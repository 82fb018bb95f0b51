// Package packs reads the operator's packs, prompt templates and envelope kinds.
package packs

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/pack"
)

// Load reads the packs of a folder and those of the binary; dir may be empty. It logs parts of packs
// that have no effect.
func Load(dir string, h pack.Host, log *slog.Logger, own ...pack.Source) ([]*pack.Pack, error) {
	packs, notes, err := Check(dir, h, own...)
	for _, n := range notes {
		log.Warn("a part of a pack has no effect on this host, or is a probable mistake", "note", n.String())
	}
	if err != nil {
		return nil, exit.Usagef("--packs %s: %w", dir, err)
	}
	return packs, nil
}

// Check is Load with its notes.
func Check(dir string, h pack.Host, own ...pack.Source) ([]*pack.Pack, []pack.Note, error) {
	sources, done, err := openPacks(dir)
	defer done()
	if err != nil {
		return nil, nil, err
	}
	return pack.Load(append(sources, own...), h)
}

// openPacks opens each folder in dir as a pack, except those whose names begin with a dot. No path
// or link leads out of a pack. Other files are ignored, except archives, which are an error: they
// look like packs. done closes what is open.
func openPacks(dir string) (sources []pack.Source, done func(), err error) {
	var open []*os.Root
	done = func() {
		for _, r := range open {
			_ = r.Close()
		}
	}
	if dir == "" {
		return nil, done, nil
	}
	all, err := os.OpenRoot(dir)
	if err != nil {
		return nil, done, errors.New("give an existing directory of packs")
	}
	open = append(open, all)
	entries, err := fs.ReadDir(all.FS(), ".")
	if err != nil {
		return nil, done, err
	}
	var errs []error
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") {
			continue
		}
		info, err := all.Stat(name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("pack %s: the folder cannot be read within --packs (a link must not lead out of it): %w", name, err))
		case info.IsDir():
			r, err := all.OpenRoot(name)
			if err != nil {
				errs = append(errs, fmt.Errorf("pack %s: %w", name, err))
				continue
			}
			open = append(open, r)
			sources = append(sources, pack.Source{Folder: name, FS: r.FS()})
		case strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz"):
			errs = append(errs, fmt.Errorf("pack %s: archives are not read; unpack it into a folder", name))
		}
	}
	return sources, done, errors.Join(errs...)
}

// IsPack reports whether a path is a folder with a manifest.
func IsPack(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, pack.File))
	return err == nil && info.Mode().IsRegular()
}
