package main

import (
	"fmt"
	"io"
	"os"

	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// readSettings reads the settings of providers; nil uses the defaults.
func (o *modelOptions) readSettings() (*limit.All, error) {
	if o.settings == "" {
		return nil, nil
	}
	doc, err := readSettingsFile(o.settings)
	if err != nil {
		return nil, fmt.Errorf("--provider-settings %s: %w", o.settings, unwrapped(err))
	}
	all, err := limit.Parse(doc, append(o.ids(), mock.ID))
	if err != nil {
		return nil, fmt.Errorf("--provider-settings %s:\n%w", o.settings, err)
	}
	return all, nil
}

// readSettingsFile reads a file of at most maxPolicies bytes.
func readSettingsFile(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // G304: the operator names the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	doc, err := io.ReadAll(io.LimitReader(f, maxPolicies+1))
	if err == nil && len(doc) > maxPolicies {
		err = fmt.Errorf("the file is longer than %d bytes", maxPolicies)
	}
	return doc, err
}
