package models

import (
	"fmt"
	"io"
	"os"

	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// LoadCatalogue returns the built-in catalogue, overridden by that of a file; the file may be empty.
func LoadCatalogue(file string) (*catalogue.Catalogue, error) {
	if file == "" {
		return catalogue.Builtin(), nil
	}
	own, err := OpenCatalogue(file)
	if err != nil {
		return nil, fmt.Errorf("--models %w", err)
	}
	return catalogue.Builtin().With(own), nil
}

// OpenCatalogue reads the catalogue of a file.
func OpenCatalogue(file string) (*catalogue.Catalogue, error) {
	f, err := os.Open(file) //nolint:gosec // G304: the user names the file
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give a JSON file of models", file, hostfile.WithoutPath(err))
	}
	defer func() { _ = f.Close() }()
	return ReadCatalogue(file, f)
}

// ReadCatalogue reads a catalogue; name is the file's, for errors.
func ReadCatalogue(name string, from io.Reader) (*catalogue.Catalogue, error) {
	doc, err := io.ReadAll(io.LimitReader(from, catalogue.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give a JSON file of models", name, hostfile.WithoutPath(err))
	}
	c, err := catalogue.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("%s is no model catalogue:\n%w", name, err)
	}
	return c, nil
}
