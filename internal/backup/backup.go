// Package backup writes and reads backups of a host: one tar file.
//
//	format.json              the version of the format
//	NAME                     a small file of the data directory
//	NAME/000001, NAME/000002 the parts of a large file, or of a snapshot of a stream
//	manifest.json            the last entry: name, size and SHA-256 of each other one
//
// The size of a snapshot is unknown while it is written, hence the parts. A file without its manifest
// is one that was not written to its end.
package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// Version is the version of the format.
	Version = 1

	formatName   = "format.json"
	manifestName = "manifest.json"
	partBytes    = 1 << 20
	// maxDocument limits the entries that are read as a whole.
	maxDocument = 64 << 20
)

// ErrDamaged means that a backup is damaged or incomplete.
var ErrDamaged = errors.New("the backup is damaged")

// Format is the first entry.
type Format struct {
	Version int       `json:"version"`
	Host    string    `json:"host"` // the build of the host
	At      time.Time `json:"at"`   // what was acknowledged before is in the backup
}

// entry is a line of the manifest.
type entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

type manifest struct {
	Entries []entry `json:"entries"`
}

// Writer writes a backup. Close it to complete the backup.
type Writer struct {
	tar     *tar.Writer
	at      time.Time
	entries []entry
}

// NewWriter writes the beginning of a backup.
func NewWriter(to io.Writer, f Format) (*Writer, error) {
	f.Version = Version
	w := &Writer{tar: tar.NewWriter(to), at: f.At}
	return w, w.document(formatName, f)
}

func (w *Writer) document(name string, v any) error {
	doc, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.File(name, doc)
}

// File writes a whole entry.
func (w *Writer) File(name string, content []byte) error {
	sum := sha256.Sum256(content)
	w.entries = append(w.entries, entry{name, int64(len(content)), hex.EncodeToString(sum[:])})
	err := w.tar.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o600, ModTime: w.at})
	if err == nil {
		_, err = w.tar.Write(content)
	}
	if err != nil {
		return fmt.Errorf("write %s to the backup: %w", name, err)
	}
	return nil
}

// Parts returns a writer of the parts of a large entry.
func (w *Writer) Parts(name string) func(part []byte) error {
	n := 0
	return func(part []byte) error {
		n++
		return w.File(fmt.Sprintf("%s/%06d", name, n), part)
	}
}

// Copy writes a large file in parts.
func (w *Writer) Copy(name string, from io.Reader) error {
	write, buffer := w.Parts(name), make([]byte, partBytes)
	for {
		n, err := io.ReadFull(from, buffer)
		if n > 0 {
			if err := write(buffer[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
}

// Close writes the manifest.
func (w *Writer) Close() error {
	if err := w.document(manifestName, manifest{w.entries}); err != nil {
		return err
	}
	return w.tar.Close()
}

// Verify reads a whole backup and compares it with its manifest. Errors: ErrDamaged.
func Verify(from io.Reader) (f Format, bytesRead int64, err error) {
	t := tar.NewReader(from)
	var found []entry
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return f, 0, fmt.Errorf("%w: it ends without a manifest, so it was not written to its end", ErrDamaged)
		}
		if err != nil {
			return f, 0, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if h.Name == manifestName {
			break
		}
		sum := sha256.New()
		var doc bytes.Buffer
		into := io.Writer(sum)
		if h.Name == formatName {
			if h.Size > maxDocument {
				return f, 0, fmt.Errorf("%w: %s has %d bytes", ErrDamaged, formatName, h.Size)
			}
			into = io.MultiWriter(sum, &doc)
		}
		n, err := io.Copy(into, t) //nolint:gosec // G110: not compressed, and only hashed
		if err != nil {
			return f, 0, fmt.Errorf("%w: %s: %w", ErrDamaged, h.Name, err)
		}
		bytesRead += n
		found = append(found, entry{h.Name, n, hex.EncodeToString(sum.Sum(nil))})
		if h.Name == formatName {
			if err := json.Unmarshal(doc.Bytes(), &f); err != nil {
				return f, 0, fmt.Errorf("%w: %s: %w", ErrDamaged, formatName, err)
			}
		}
	}
	if err := compare(t, found); err != nil {
		return f, 0, err
	}
	if f.Version != Version {
		return f, 0, fmt.Errorf("the backup has format %d, and this program reads format %d: use the release that wrote it, %s",
			f.Version, Version, f.Host)
	}
	return f, bytesRead, nil
}

// compare reads the manifest, and compares it with the entries before it.
func compare(t *tar.Reader, found []entry) error {
	var m manifest
	doc, err := io.ReadAll(io.LimitReader(t, maxDocument<<4))
	if err == nil {
		err = json.Unmarshal(doc, &m)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, manifestName, err)
	}
	for i, want := range m.Entries {
		if i >= len(found) {
			return fmt.Errorf("%w: %s is missing", ErrDamaged, want.Name)
		}
		if found[i] != want {
			return fmt.Errorf("%w: %s does not match its hash", ErrDamaged, want.Name)
		}
	}
	if len(found) != len(m.Entries) || len(found) == 0 || found[0].Name != formatName {
		return fmt.Errorf("%w: it has other entries than its manifest lists", ErrDamaged)
	}
	return nil
}
