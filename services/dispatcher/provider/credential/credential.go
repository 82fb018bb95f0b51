// Package credential reads tenants' own keys for model calls.
//
// The operator provides them in a directory, such as a mounted Kubernetes secret. They are read
// again for each use, so that a key can be changed while the host runs:
//
//	<dir>/<tenant>/<provider>/<ref>
//
// A run names its key by a ref (configurable.ai.credentialRef). A key is only sent to the provider
// whose directory it is in.
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

// maxKey limits a key in bytes, like the redactor's limit of a secret.
const maxKey = 8 << 10

var (
	// validRef is part of a secret's id. With a provider's id before it, it must fit the redactor's
	// limit of 128 bytes. Markers contain it.
	validRef = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	// validName matches names of tenants and providers: no path separators.
	validName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

// ErrNone means that there is no such key.
var ErrNone = errors.New("there is no such credential")

// ValidRef reports whether a ref is well formed.
func ValidRef(ref string) bool { return validRef.MatchString(ref) }

// Store is a directory of keys. The nil Store is empty. It is safe for concurrent use.
type Store struct{ root *os.Root }

// Open opens a directory. No path or link in it leads outside.
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

// Key reads a tenant's key for a provider. Errors: ErrNone; any other error describes a problem of
// the file without its content.
func (s *Store) Key(tenant, providerID, ref string) (provider.Secret, error) {
	if s == nil || !validName.MatchString(tenant) || !validName.MatchString(providerID) || !ValidRef(ref) {
		return "", ErrNone
	}
	return s.read(path.Join(tenant, providerID, ref))
}

// Keys returns all keys of a tenant under a ref, by provider. The error describes unreadable keys,
// which are left out.
func (s *Store) Keys(tenant, ref string) (map[string]provider.Secret, error) {
	if s == nil || !validName.MatchString(tenant) || !ValidRef(ref) {
		return nil, nil
	}
	entries, err := fs.ReadDir(s.root.FS(), tenant)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the credentials of tenant %s: %w", tenant, withoutPath(err))
	}
	out, errs := map[string]provider.Secret{}, []error(nil)
	for _, e := range entries {
		if !validName.MatchString(e.Name()) {
			continue // mounts contain folders of their own
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
		return "", fmt.Errorf("credential %s: %w", name, withoutPath(err))
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", ErrNone
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKey+1))
	if err != nil {
		return "", fmt.Errorf("credential %s: %w", name, withoutPath(err))
	}
	key := strings.TrimSpace(string(b))
	if key == "" || len(b) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("credential %s: want one key of at most %d bytes, without spaces or line ends within it", name, maxKey)
	}
	return provider.Secret(key), nil
}

// withoutPath removes the path, which describes the machine, from an error.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
