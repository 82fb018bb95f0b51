// Package credential reads the keys that tenants bring for their own model calls.
//
// They lie in a directory that the operator fills, such as a mounted Kubernetes
// secret, and are read anew for each use, so that a key can be changed while the host
// runs:
//
//	<dir>/<tenant>/<provider>/<ref>
//
// A ref is what a run names its key by (configurable.ai.credentialRef). It is bound to
// the provider that it lies under: no key is ever sent to another one.
package credential

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// maxKey bounds a key, in bytes: as long as the redactor takes a secret.
const maxKey = 8 << 10

var (
	// validRef is part of a secret's id: with a provider's id before it, it has to be
	// within the 128 bytes that the redactor takes. Markers name it.
	validRef = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	// validName is a tenant's or a provider's: no way out of the directory.
	validName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// ErrNone says that there is no such key.
var ErrNone = errors.New("there is no such credential")

// ValidRef reports whether a run may name a key so.
func ValidRef(ref string) bool { return validRef.MatchString(ref) }

// Store is a directory of keys. The nil Store has none. It is safe for concurrent use.
type Store struct{ root *os.Root }

// Open opens a directory; no path and no link in it leads out of it.
func Open(dir string) (*Store, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.New("give an existing directory, with a key in each <tenant>/<provider>/<ref>")
	}
	return &Store{root}, nil
}

// Close closes the directory.
func (s *Store) Close() error {
	if s == nil {
		return nil
	}
	return s.root.Close()
}

// Key reads a tenant's key for a provider. Errors: ErrNone; any other says what is
// wrong with the file, and holds no word of it.
func (s *Store) Key(tenant, providerID, ref string) (provider.Secret, error) {
	if s == nil || !validName.MatchString(tenant) || !validName.MatchString(providerID) || !ValidRef(ref) {
		return "", ErrNone
	}
	return s.read(path.Join(tenant, providerID, ref))
}

// Keys are all keys that a tenant has under a ref, by provider. The error is about
// those that cannot be read, which are left out: nobody can be asked with them.
func (s *Store) Keys(tenant, ref string) (map[string]provider.Secret, error) {
	if s == nil || !validName.MatchString(tenant) || !ValidRef(ref) {
		return nil, nil
	}
	entries, err := fs.ReadDir(s.root.FS(), tenant)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the credentials of tenant %s: %w", tenant, cause(err))
	}
	out, errs := map[string]provider.Secret{}, []error(nil)
	for _, e := range entries {
		if !validName.MatchString(e.Name()) {
			continue // a mount keeps its own folders beside
		}
		key, err := s.read(path.Join(tenant, e.Name(), ref))
		switch {
		case err == nil:
			out[e.Name()] = key
		case !errors.Is(err, ErrNone):
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func (s *Store) read(name string) (provider.Secret, error) {
	f, err := s.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return "", ErrNone
	}
	if err != nil {
		return "", fmt.Errorf("credential %s: %w", name, cause(err))
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", ErrNone
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return "", fmt.Errorf("credential %s: %w", name, cause(err))
	}
	key := strings.TrimSpace(string(b))
	if key == "" || len(b) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("credential %s: want one key of at most %d bytes, without spaces or line ends within it", name, maxKey)
	}
	return provider.Secret(key), nil
}

// cause is an error without the path, which is of the machine.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
