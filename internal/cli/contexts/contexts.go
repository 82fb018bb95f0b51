// Package contexts keeps what the command line knows of hosts: named URLs and
// credentials, in one private file of the user.
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

// Context is one host, and how to sign in there.
type Context struct {
	URL string `yaml:"url" json:"url"`
	// Token is the credential itself; TokenFile names a file that holds it.
	Token     string `yaml:"token,omitempty" json:"-"`
	TokenFile string `yaml:"tokenFile,omitempty" json:"tokenFile,omitempty"`
	// Keyring says that the operating system's keyring has it.
	Keyring bool `yaml:"keyring,omitempty" json:"keyring,omitempty"`
	// CA names a file of certificates that vouch for the host.
	CA string `yaml:"ca,omitempty" json:"ca,omitempty"`
}

// File is all that is kept.
type File struct {
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts,omitempty"`
}

// ErrUnknown marks a context that is not in the file.
var ErrUnknown = errors.New("no such context")

// Path is where the file is: $XDG_CONFIG_HOME/waybill, else ~/.config/waybill.
func Path(getenv func(string) string) (string, error) {
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // the XDG base directory specification: ignore a relative one
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("neither XDG_CONFIG_HOME nor HOME is set: there is no place for contexts")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "waybill", "contexts.yaml"), nil
}

// Load reads the file. That there is none is no error.
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
		return f, fmt.Errorf("%s holds credentials, and others may read it (%s): chmod 600 %s", path, info.Mode().Perm(), path)
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

// Save writes the file, whole or not at all, for its owner alone.
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
	defer func() { _ = os.Remove(tmp.Name()) }() // gone already if all went well
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// Get gives a context by name.
func (f File) Get(name string) (Context, error) {
	c, ok := f.Contexts[name]
	if !ok {
		return c, fmt.Errorf("%w: %q; there are %v", ErrUnknown, name, f.Names())
	}
	return c, nil
}

// Names lists the contexts, sorted.
func (f File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }
