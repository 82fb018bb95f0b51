// Package settingsfile lists the JSON files of settings that a host reads, for checks and editors.
package settingsfile

import (
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/tenantlimit"
	"waybill.dev/waybill/services/dispatcher/tool"
	"waybill.dev/waybill/services/gateway/admission"
)

// Kind is a kind of files.
type Kind struct {
	// Name is that of the flag of the file.
	Name string
	// Schema is its JSON Schema.
	Schema []byte
	// Check returns all mistakes of a document; most are strictjson.Problems. What only a host can know,
	// such as the ids of its providers, is not checked.
	Check func(doc []byte) error
}

// Kinds returns all kinds, by name.
func Kinds() []Kind {
	return []Kind{
		{"models", catalogue.Schema(), func(doc []byte) error { _, err := catalogue.Parse(doc); return err }},
		{"provider-policies", model.PolicySchema(), func(doc []byte) error { _, err := model.ParsePolicies(doc); return err }},
		{"provider-settings", limit.Schema(), func(doc []byte) error { _, err := limit.Parse(doc, nil); return err }},
		{"rate-limits", admission.RateSchema(), func(doc []byte) error { _, err := admission.ParseRateFile(doc, nil); return err }},
		{"tenant-limits", tenantlimit.Schema(), func(doc []byte) error { _, err := tenantlimit.Parse(doc); return err }},
		{"tool-limits", tool.LimitsSchema(), func(doc []byte) error { _, err := tool.ParseLimits(doc, nil, nil); return err }},
	}
}
