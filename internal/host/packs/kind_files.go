package packs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/services/acceptor/kinds"
)

// KindFiles joins the examples' kinds and the operator's folder into one.
func KindFiles(dir string) (fs.FS, error) {
	files := flatFS{}
	err := fs.WalkDir(examples.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".schema.json") {
			files[path.Base(name)] = located{examples.FS, name}
		}
		return err
	})
	if err != nil || dir == "" {
		return files, err
	}
	own := os.DirFS(dir)
	entries, err := fs.ReadDir(own, ".")
	if err != nil {
		return nil, fmt.Errorf("--kinds %s: %w", dir, err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			files[e.Name()] = located{own, e.Name()} // the operator's file replaces an example's
		}
	}
	return files, nil
}

// KindFile is a file of a folder of kinds. Err is why a host would reject it; nil if it would not.
type KindFile struct {
	File, Kind string
	Doc        []byte
	Err        error
}

// CheckKinds checks the files of a folder as a host does.
func CheckKinds(dir string) ([]KindFile, error) {
	files, err := KindFiles(dir)
	if err != nil {
		return nil, err
	}
	all, err := kinds.New(kinds.LintWarn)
	if err != nil {
		return nil, err
	}
	own, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []KindFile
	for _, e := range own {
		kind, ok := strings.CutSuffix(e.Name(), ".schema.json")
		if !ok || e.IsDir() {
			continue
		}
		_, err := all.LoadFile(files, e.Name(), kind)
		doc, _ := fs.ReadFile(files, e.Name()) // an unreadable one has no places
		out = append(out, KindFile{filepath.Join(dir, e.Name()), kind, doc, err})
	}
	return out, nil
}

// unreadKind is the name of a file that is probably meant as that of a kind.
var unreadKind = regexp.MustCompile(`(?i)^vendor\.[a-z0-9-]+(\.[a-z0-9_-]+)*\.(schemas?\.)?(json|ya?ml)$`)

// UnreadKinds lists files of a folder that are probably kinds, and whose names a host ignores: those like
// kinds, and kinds in a folder of it. Files such as examples of payloads are no schemas.
func UnreadKinds(dir string) (out []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			nested, err := filepath.Glob(filepath.Join(file, "vendor.*.schema.json"))
			if err == nil { // otherwise the name of the folder is no pattern
				out = append(out, nested...)
			}
		case !strings.HasSuffix(e.Name(), ".schema.json") && unreadKind.MatchString(e.Name()):
			if doc, err := fs.ReadFile(os.DirFS(dir), e.Name()); err == nil && strings.Contains(string(doc), "properties") {
				out = append(out, file)
			}
		}
	}
	return out, nil
}

// CheckPackKinds checks the kinds of a pack as a host does: in the order of p.Kinds, why a host would
// reject each; nil if it would not.
func CheckPackKinds(p *pack.Pack) ([]error, error) {
	all, err := kinds.New(kinds.LintWarn)
	if err != nil {
		return nil, err
	}
	wrong := make([]error, len(p.Kinds))
	for i, k := range p.Kinds {
		_, wrong[i] = all.Register(k.Name, k.Version, k.Schema)
	}
	return wrong, nil
}

// flatFS is one folder of files from several places.
type flatFS map[string]located

type located struct {
	fs   fs.FS
	name string
}

// Open opens a file of the folder.
func (f flatFS) Open(name string) (fs.File, error) {
	l, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return l.fs.Open(l.name)
}

// ReadDir lists the folder; the only one there is.
func (f flatFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	var out []fs.DirEntry
	for file, l := range f {
		info, err := fs.Stat(l.fs, l.name)
		if err != nil {
			return nil, err
		}
		out = append(out, renamed{fs.FileInfoToDirEntry(info), file})
	}
	return out, nil
}

type renamed struct {
	fs.DirEntry
	name string
}

func (r renamed) Name() string { return r.name }
