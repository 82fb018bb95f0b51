package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"waybill.dev/waybill/services/dispatcher/catalogue"
)

// loadCatalogue is the catalogue that comes with the host, with that of --models
// laid over it, if the flag names a file.
func loadCatalogue(file string) (*catalogue.Catalogue, error) {
	if file == "" {
		return catalogue.Builtin(), nil
	}
	own, err := openCatalogue(file)
	if err != nil {
		return nil, fmt.Errorf("--models %w", err)
	}
	return catalogue.Builtin().With(own), nil
}

// openCatalogue reads a catalogue as it stands in a file.
func openCatalogue(file string) (*catalogue.Catalogue, error) {
	f, err := os.Open(file) //nolint:gosec // G304: the user names the file
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give a JSON file of models", file, unwrapped(err))
	}
	defer func() { _ = f.Close() }()
	return readCatalogue(file, f)
}

// readCatalogue reads a catalogue; name is that of its file.
func readCatalogue(name string, from io.Reader) (*catalogue.Catalogue, error) {
	doc, err := io.ReadAll(io.LimitReader(from, catalogue.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give a JSON file of models", name, unwrapped(err))
	}
	c, err := catalogue.Parse(doc)
	if err != nil {
		return nil, fmt.Errorf("%s is no model catalogue:\n%w", name, err)
	}
	return c, nil
}

// unwrapped is what befell a file, without its name, which is said already.
func unwrapped(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
