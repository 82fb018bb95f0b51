package projection

import (
	"slices"

	"waybill.dev/waybill/protocol/schema"
)

// Vendor is the provider of a structured-output mode.
type Vendor string

// The vendors of the table.
const (
	OpenAI    Vendor = schema.OpenAI
	Anthropic Vendor = schema.Anthropic
	Gemini    Vendor = schema.Gemini
)

// AsOf is the month in which the table of dialects was last checked against the vendors'
// documentation. Check again before relying on a row (OpenWOP envelope contract §20).
const AsOf = "2026-05"

// Dialect is what a vendor's strict mode supports.
type Dialect struct {
	Vendor Vendor
	// Mode is the vendor's name for it.
	Mode string
	// Keywords are the supported keywords.
	Keywords []string
	// Recursion: references may be recursive.
	Recursion bool
	// MaxDepth limits the depth, one level for each properties, items, anyOf and $defs;
	// MaxProperties the properties of the whole schema. 0: no limit is known.
	MaxDepth, MaxProperties int
}

// common are the keywords that every vendor supports.
var common = []string{
	"$defs", "$ref", "additionalProperties", "anyOf", "description", "enum", "items", "properties",
	"required", "type",
}

var dialects = []Dialect{
	{Vendor: OpenAI, Mode: "strict", Keywords: common, Recursion: true, MaxDepth: 5, MaxProperties: 100},
	{Vendor: Anthropic, Mode: "strict", Keywords: common},
	// The constraints are those of models since 2.5. Limits of arrays are undocumented, so they are
	// not used.
	{
		Vendor: Gemini, Mode: "responseSchema", Recursion: true,
		Keywords: append([]string{
			"format", "maxLength", "maximum", "minLength", "minimum", "multipleOf", "pattern", "prefixItems", "propertyOrdering",
		}, common...),
	},
}

// Vendors lists the vendors of the table.
func Vendors() []Vendor { return []Vendor{OpenAI, Anthropic, Gemini} }

// DialectOf returns a vendor's row of the table.
func DialectOf(v Vendor) (Dialect, bool) {
	i := slices.IndexFunc(dialects, func(d Dialect) bool { return d.Vendor == v })
	if i < 0 {
		return Dialect{}, false
	}
	d := dialects[i]
	d.Keywords = slices.Sorted(slices.Values(d.Keywords))
	return d, true
}

// says reports whether the vendor supports a keyword.
func (d Dialect) says(keyword string) bool { return slices.Contains(d.Keywords, keyword) }
