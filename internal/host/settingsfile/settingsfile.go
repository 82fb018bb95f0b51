// Package settingsfile lists the files of settings that a host reads, for checks and editors.
package settingsfile

import (
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/queue/tenantlimit"
	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/gateway/admission"
)

// Kind is a kind of files.
type Kind struct {
	// Name is that of the flag of the file.
	Name string
	// Schema is its JSON Schema.
	Schema []byte
	// YAML means that the file is YAML, which JSON is, too.
	YAML bool
	// Check returns all mistakes of a document; most are strictjson.Problems. It reads no environment
	// variables and no other files.
	Check func(doc []byte, on Host) error
}

// Doubts returns what is probably a mistake in a document that a host accepts.
func (k Kind) Doubts(doc []byte, on Host) strictjson.Problems {
	find := doubtsOf[k.Name]
	if find == nil {
		return nil
	}
	d := &doubts{on: on}
	find(d, doc)
	return d.found
}

// Host is what is known of the host. A nil member knows all names.
type Host struct {
	Providers, MCPServers, A2AAgents *settings.Names
	// Models overrides the built-in catalogue; nil keeps it.
	Models *catalogue.Catalogue
}

// The kinds that tell checks of others what a host has: the files of --models and --provider-settings.
const (
	Models           = "models"
	ProviderSettings = "provider-settings"
)

// Kinds returns all kinds, by name.
func Kinds() []Kind {
	return []Kind{
		{Models, catalogue.Schema(), false, func(doc []byte, _ Host) error { _, err := catalogue.Parse(doc); return err }},
		{"provider-policies", model.PolicySchema(), false, func(doc []byte, on Host) error {
			p, err := model.ParsePolicies(doc, on.Providers)
			if err == nil && on.Providers != nil && on.Providers.Doubt != nil {
				for _, doubt := range p.Unmatched(catalogue.Builtin().With(on.Models)) {
					on.Providers.Doubt(doubt)
				}
			}
			return err
		}},
		{ProviderSettings, limit.Schema(), false, func(doc []byte, on Host) error {
			_, err := models.ParseSettings(doc, on.Providers)
			return err
		}},
		{"rate-limits", admission.RateSchema(), false, func(doc []byte, _ Host) error {
			_, err := admission.ParseRateFile(doc, nil)
			return err
		}},
		{"secrets-file", hostfile.SecretsSchema(), true, func(doc []byte, _ Host) error {
			if _, found := hostfile.ParseSecrets(doc); len(found) > 0 {
				return found
			}
			return nil
		}},
		{"tenant-limits", tenantlimit.Schema(), false, func(doc []byte, _ Host) error {
			_, err := tenantlimit.Parse(doc)
			return err
		}},
		{"tool-limits", tool.LimitsSchema(), false, func(doc []byte, on Host) error {
			_, err := tool.ParseLimits(doc, on.MCPServers, on.A2AAgents)
			return err
		}},
	}
}
