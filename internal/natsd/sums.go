package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sumsFile lists the files of a store that was stopped in an orderly way. It exists only until the
// next start, so what differs then is damage. After a crash there is none.
const sumsFile = "waybill.sums"

// fileSum is the state of a file. Block files have only a size: their records have checksums.
type fileSum struct {
	Size   int64  `json:"size"`
	SHA256 []byte `json:"sha256,omitempty"`
}

// writeSums lists the files of a stopped server.
func writeSums(storeDir string) error {
	sums := map[string]fileSum{}
	root := streamsDir(storeDir)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		s := fileSum{Size: st.Size()}
		if blockNumber(e.Name()) == 0 {
			content, err := os.ReadFile(path) //nolint:gosec // G304: in the data directory
			if err != nil {
				return err
			}
			s.SHA256 = sum256(content)
		}
		sums[filepath.ToSlash(name)] = s
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no stream
	}
	if err != nil {
		return err
	}
	list, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	path := filepath.Join(storeDir, sumsFile)
	if err := os.WriteFile(path+".tmp", list, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func sum256(p []byte) []byte { s := sha256.Sum256(p); return s[:] }

// compare compares the files with the list of the last stop, and deletes the list.
func (m *mender) compare(storeDir string) error {
	path := filepath.Join(storeDir, sumsFile)
	list, err := os.ReadFile(path) //nolint:gosec // G304: in the data directory
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	var sums map[string]fileSum
	if json.Unmarshal(list, &sums) == nil && !m.used(sums, st.ModTime()) {
		for name, sum := range sums {
			if err := m.compareFile(name, sum); err != nil {
				return err
			}
		}
	}
	return os.Remove(path)
}

// used reports whether another server has used the store after the list was written, such as one of
// an older version.
func (m *mender) used(sums map[string]fileSum, at time.Time) bool {
	used := false
	_ = filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error { // the server reports what cannot be read
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // see above
		}
		name, _ := filepath.Rel(m.dir, path)
		was, known := sums[filepath.ToSlash(name)]
		st, err := e.Info()
		switch {
		case err != nil:
		case blockNumber(e.Name()) > 0:
			used = used || !known || st.Size() > was.Size
		case e.Name() == indexFile:
			used = used || st.ModTime().After(at)
		}
		return nil
	})
	return used
}

// compareFile compares a file with its listed state. Files with checksums of their own are left to
// other checks.
func (m *mender) compareFile(name string, want fileSum) error {
	path := filepath.Join(m.dir, filepath.FromSlash(name))
	stream, _, _ := strings.Cut(name, "/")
	base := filepath.Base(path)
	if strings.HasPrefix(stream, ".") || base == indexFile || base == configFile || base == configSum {
		return nil
	}
	d := Damage{Stream: stream, File: path, Outcome: Lost, What: "it is gone"}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m.journal.add(d, nil)
	case err != nil:
		return err
	case blockNumber(base) > 0:
		if missing := want.Size - st.Size(); missing > 0 {
			d.Offset, d.Bytes = int(st.Size()), int(missing)
			d.What = fmt.Sprintf("its last %d bytes are gone", missing)
			return m.journal.add(d, nil)
		}
		return nil
	}
	content, err := os.ReadFile(path) //nolint:gosec // G304: in the data directory
	if err != nil || bytes.Equal(sum256(content), want.SHA256) {
		return err
	}
	d.Bytes = len(content)
	was := bytes.Clone(content)
	if 8*len(content)*len(content) < m.left {
		m.left -= 8 * len(content) * len(content)
		if at := flipBack(content, func() bool { return bytes.Equal(sum256(content), want.SHA256) }); at >= 0 {
			d.Outcome, d.Offset, d.What = Repaired, at, "a flipped bit was repaired"
			return errors.Join(m.journal.add(d, was), os.WriteFile(path, content, 0o600)) //nolint:gosec // G703: in the data directory
		}
	}
	d.What = "its content is not what was written: the server starts a new one"
	return errors.Join(m.journal.add(d, was), os.Remove(path))
}
