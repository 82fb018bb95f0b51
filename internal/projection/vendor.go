package projection

import (
	"regexp"
	"slices"

	"waybill.dev/waybill/protocol/schema"
)

// Vendor is the provider of a structured-output mode, or the engine of a self-hosted server.
type Vendor string

// The vendors of the table.
const (
	OpenAI    Vendor = schema.OpenAI
	Tuned     Vendor = "openai-tuned"
	Azure     Vendor = "azure"
	Anthropic Vendor = schema.Anthropic
	Gemini    Vendor = schema.Gemini
	Mistral   Vendor = "mistral"
	Groq      Vendor = "groq"
	DeepSeek  Vendor = "deepseek"
	LlamaCPP  Vendor = "llama.cpp"
	Ollama    Vendor = "ollama"
	LMStudio  Vendor = "lmstudio"
	VLLM      Vendor = "vllm"

	// AsWritten is not in the table: the server gets the schema unchanged.
	AsWritten Vendor = "as-written"
)

// AsOf is the month in which the table of dialects was last checked against the vendors'
// documentation. Check again before relying on a row (OpenWOP envelope contract §20).
const AsOf = "2026-11"

// Dialect is what a vendor's strict mode supports. Limits are 0 if none is documented.
type Dialect struct {
	Vendor Vendor
	// Mode is the vendor's name for it, Source the page that documents it.
	Mode, Source string
	// Keywords are the supported keywords.
	Keywords []string
	// Formats are the supported values of format; nil supports all.
	Formats []string
	// FewItems: minItems may be 0 or 1 only.
	FewItems bool
	// Closed: every object needs additionalProperties false. AllRequired: every property must be
	// required. ObjectRoot: the root must be an object.
	Closed, AllRequired, ObjectRoot bool
	// Recursion: references may be recursive.
	Recursion bool
	// FirstKeys: the objects of a union must differ in their first property.
	FirstKeys bool
	// Names is the pattern of names of properties; nil allows all.
	Names *regexp.Regexp
	// Depth limits nested objects and Properties the properties of the whole schema.
	Depth, Properties int
	// Optional limits the properties that are not required, Unions the schemas with several types or
	// anyOf.
	Optional, Unions int
	// EnumValues limits the values of all enums, Text the characters of all names and enum values.
	EnumValues, Text int
	// LargeEnum is the number of values of an enum above which LargeEnumText limits its characters.
	LargeEnum, LargeEnumText int
}

// common are the keywords that every vendor supports.
var common = []string{
	"$defs", "$ref", "additionalProperties", "anyOf", "description", "enum", "items", "properties",
	"required", "type",
}

// Groups of further keywords.
var (
	bounded = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	counts  = []string{"minItems", "maxItems"}
	sized   = []string{"minLength", "maxLength"}
)

// documented are the formats that OpenAI and most others list.
var documented = []string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}

// safeName is Anthropic's rule for names of properties.
var safeName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// dialects is the table, as of AsOf. docs/structured-output.md shows it with the sources.
var dialects = []Dialect{
	{
		Vendor: OpenAI, Mode: "response_format json_schema, strict", Source: "https://developers.openai.com/api/docs/guides/structured-outputs",
		Keywords: slices.Concat(common, bounded, counts, []string{"pattern", "format"}), Formats: documented,
		Closed: true, AllRequired: true, ObjectRoot: true, Recursion: true, FirstKeys: true,
		Depth: 10, Properties: 5000, EnumValues: 1000, Text: 120_000, LargeEnum: 250, LargeEnumText: 15_000,
	},
	{
		// Fine-tuned models lack the keywords that constrain values.
		Vendor: Tuned, Mode: "response_format json_schema, strict", Source: "https://developers.openai.com/api/docs/guides/structured-outputs",
		Keywords: common,
		Closed:   true, AllRequired: true, ObjectRoot: true, Recursion: true, FirstKeys: true,
		Depth: 10, Properties: 5000, EnumValues: 1000, Text: 120_000, LargeEnum: 250, LargeEnumText: 15_000,
	},
	{
		Vendor: Azure, Mode: "response_format json_schema, strict", Source: "https://learn.microsoft.com/azure/ai-services/openai/how-to/structured-outputs",
		Keywords: common,
		Closed:   true, AllRequired: true, ObjectRoot: true, Recursion: true, FirstKeys: true,
		Depth: 5, Properties: 100, EnumValues: 500, Text: 15_000, LargeEnum: 250, LargeEnumText: 7_500,
	},
	{
		// Patterns are documented, but complex ones are rejected, so they become sentences.
		Vendor: Anthropic, Mode: "output_config.format, strict tools", Source: "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
		Keywords: slices.Concat(common, []string{"format", "minItems"}), Formats: append([]string{"uri"}, documented...),
		FewItems: true, Closed: true, ObjectRoot: true, Names: safeName, Optional: 24, Unions: 16,
	},
	{
		// The constraints are those of models since 2.5.
		Vendor: Gemini, Mode: "responseJsonSchema", Source: "https://ai.google.dev/gemini-api/docs/structured-output",
		Keywords: slices.Concat(common, counts, sized, []string{
			"format", "maximum", "minimum", "multipleOf", "pattern", "prefixItems", "propertyOrdering",
		}),
		ObjectRoot: true, Recursion: true,
	},
	{
		Vendor: Mistral, Mode: "response_format json_schema, strict", Source: "https://docs.mistral.ai/capabilities/structured-output/custom_structured_output/",
		Keywords: common, Closed: true, AllRequired: true, ObjectRoot: true, Recursion: true,
	},
	{
		Vendor: Groq, Mode: "response_format json_schema, strict", Source: "https://console.groq.com/docs/structured-outputs",
		Keywords: common, Closed: true, AllRequired: true, ObjectRoot: true, Recursion: true,
	},
	{
		// There is no schema for answers, only for strict tools of the beta address.
		Vendor: DeepSeek, Mode: "strict tools (beta)", Source: "https://api-docs.deepseek.com/guides/tool_calls",
		Keywords: slices.Concat(common, bounded, []string{"pattern", "format"}), Formats: []string{"email", "hostname", "ipv4", "ipv6", "uuid"},
		Closed: true, AllRequired: true, ObjectRoot: true, Recursion: true,
	},
	llama(LlamaCPP, "https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md"),
	llama(Ollama, "https://ollama.com/blog/structured-outputs"),
	llama(LMStudio, "https://lmstudio.ai/docs/advanced/structured-output"),
	{
		Vendor: VLLM, Mode: "response_format json_schema (XGrammar)", Source: "https://xgrammar.mlc.ai/docs/",
		Keywords: slices.Concat(common, counts, sized, []string{
			"exclusiveMaximum", "exclusiveMinimum", "format", "maximum", "minimum", "pattern", "prefixItems",
		}),
		Formats: documented, Recursion: true,
	},
}

// llama is the row of a server with llama.cpp's grammars. Bounds apply to integers only there, and
// patterns to few constructs, so neither is relied on.
func llama(v Vendor, source string) Dialect {
	return Dialect{
		Vendor: v, Mode: "response_format json_schema (grammar)", Source: source,
		Keywords: slices.Concat(common, counts, sized, []string{"format"}),
		Formats:  []string{"date", "date-time", "time", "uuid"}, Recursion: true,
	}
}

// Vendors lists the vendors of the table.
func Vendors() []Vendor {
	out := make([]Vendor, len(dialects))
	for i, d := range dialects {
		out[i] = d.Vendor
	}
	return out
}

// Builtin lists the vendors that hosts have a provider for.
func Builtin() []Vendor { return []Vendor{OpenAI, Anthropic, Gemini} }

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

// takes reports whether the vendor supports a constraint with this value.
func (d Dialect) takes(f field) bool {
	switch {
	case !d.says(f.name):
		return false
	case f.name == "format":
		return d.Formats == nil || slices.Contains(d.Formats, f.value.plain)
	case f.name == "pattern":
		return isPlainPattern(f.value.plain)
	case f.name == "minItems" && d.FewItems:
		return f.value.plain == "0" || f.value.plain == "1"
	}
	return true
}

// special matches constructs that constrained decoding lacks, or has in another way: word boundaries,
// back references, groups other than (?:, and long repetitions.
var special = regexp.MustCompile(`\\[bBAzQk1-9]|\(\?[^:]|[{,][0-9]{4}`)

// isPlainPattern reports whether a valid pattern is a regular language in common syntax.
func isPlainPattern(p string) bool { return !special.MatchString(p) }
