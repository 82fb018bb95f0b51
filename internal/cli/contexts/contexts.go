// Package contexts stores named hosts with their URLs and credentials in a private file of the
// user.
package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Context is one host and its credential.
type Context struct {
	URL string `yaml:"url" json:"url"`
	// Token is the credential; TokenFile is the path of a file with it.
	Token     string `yaml:"token,omitempty" json:"-"`
	TokenFile string `yaml:"tokenFile,omitempty" json:"tokenFile,omitempty"`
	// Keyring is true if the credential is in the operating system's keyring.
	Keyring bool `yaml:"keyring,omitempty" json:"keyring,omitempty"`
	// CA is the path of a PEM file of CAs for the host.
	CA string `yaml:"ca,omitempty" json:"ca,omitempty"`
}

// File is the content of the contexts file.
type File struct {
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts,omitempty"`
}

// ErrUnknown is returned for a context that is not in the file.
var ErrUnknown = errors.New("no such context")

// Path returns the path of the file, in $XDG_CONFIG_HOME/waybill or ~/.config/waybill.
func Path(getenv func(string) string) (string, error) {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the XDG base directory specification: ignore a relative one
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("no path for contexts.yaml: set XDG_CONFIG_HOME or HOME")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "waybill", "contexts.yaml"), nil
}

// Load reads the file. A missing file is empty.
func Load(path string) (File, error) {
	f := File{Contexts: map[string]Context{}}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return f, fmt.Errorf("%s holds credentials but is readable by others (%s); run chmod 600 %s", path, info.Mode().Perm(), path)
	}
	b, err := os.ReadFile(path) //nolint:gosec // G304: the user's own file
	if err != nil {
		return f, err
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && len(bytes.TrimSpace(b)) > 0 {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	if f.Contexts == nil {
		f.Contexts = map[string]Context{}
	}
	return f, nil
}

// Save replaces the file atomically, readable by its owner only.
func (f File) Save(path string) error {
	b, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".contexts-*") // with 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // already renamed on success
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// Get returns a context by name.
func (f File) Get(name string) (Context, error) {
	c, ok := f.Contexts[name]
	if !ok {
		return c, fmt.Errorf("%w: %q; known: %v", ErrUnknown, name, f.Names())
	}
	return c, nil
}

// Names returns the names of the contexts, sorted.
func (f File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }
