package models

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/credential"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/provider/sample"
)

// Open creates the providers: the sample, the operator's, and the scripted one unless scripts is nil.
// later is called with the functions that close their connections.
func (o *Options) Open(scripts mock.Scripts, later func(func())) (*provider.Registry, error) {
	list := []provider.Provider{sample.New(0)}
	all, err := o.configured()
	errs := []error{err}
	for _, g := range all {
		p, err := g.open()
		if err != nil {
			errs = append(errs, o.placed(g, err))
			continue
		}
		if c, ok := p.(interface{ Close() }); ok {
			later(c.Close)
		}
		list = append(list, p)
	}
	if scripts != nil {
		list = append(list, mock.New(scripts))
	}
	reg, err := provider.NewRegistry(list...)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	return reg, nil
}

// maxPolicies limits the files of --provider-policies and --provider-settings, in bytes.
const maxPolicies = 1 << 20

// Policies reads the model policies of tenants; nil allows all.
func (o *Options) Policies() (*model.Policies, error) {
	if o.PoliciesFile == "" || o.ValuesOnly {
		return nil, nil
	}
	doc, err := readSettingsFile(o.PoliciesFile)
	if err != nil {
		return nil, fmt.Errorf("--provider-policies %s: %w", o.PoliciesFile, hostfile.WithoutPath(err))
	}
	p, err := model.ParsePolicies(doc, o.names())
	if err != nil {
		return nil, fmt.Errorf("--provider-policies %s:\n%w", o.PoliciesFile, err)
	}
	return p, nil
}

// Credentials opens the directory of tenants' keys; nil without one.
func (o *Options) Credentials() (*credential.Store, error) {
	if o.CredentialsDir == "" {
		return nil, nil
	}
	s, err := credential.Open(o.CredentialsDir)
	if err != nil {
		return nil, exit.Usagef("--credentials %s: %w", o.CredentialsDir, err)
	}
	return s, nil
}

// Settings reads the settings of providers; nil uses the defaults.
func (o *Options) Settings() (*limit.All, error) {
	_, all, err := o.parseSettings(o.names())
	return all, err
}

// names are the ids that settings may name: the providers, and the vendors, whose key may be missing here.
func (o *Options) names() *settings.Names {
	known := o.IDs()
	for _, id := range slices.Concat(VendorIDs(), []string{mock.ID}) {
		if !slices.Contains(known, id) {
			known = append(known, id)
		}
	}
	return &settings.Names{Known: known}
}

// parseSettings reads the settings of providers, and returns their document. A nil known knows all ids.
func (o *Options) parseSettings(known *settings.Names) (doc []byte, all *limit.All, err error) {
	if o.SettingsFile == "" || o.ValuesOnly {
		return nil, nil, nil
	}
	if doc, err = readSettingsFile(o.SettingsFile); err != nil {
		return nil, nil, fmt.Errorf("--provider-settings %s: %w", o.SettingsFile, hostfile.WithoutPath(err))
	}
	if all, err = ParseSettings(doc, known); err != nil {
		return nil, nil, fmt.Errorf("--provider-settings %s:\n%w", o.SettingsFile, err)
	}
	return doc, all, nil
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
