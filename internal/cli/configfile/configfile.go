// Package configfile describes the files of --config, whose members are the flags of `waybill dev` and of
// the services.
package configfile

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/cli/dev"
	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/cli/serve"
	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/host/settingsfile"
)

// Kinds returns the kinds of all settings files, by name.
func Kinds() []settingsfile.Kind {
	all := append(settingsfile.Kinds(), settingsfile.Kind{
		Name: "config", YAML: true, Schema: schema(),
		Check: func(doc []byte, _ settingsfile.Host) error { return check(doc) },
	})
	slices.SortFunc(all, func(a, b settingsfile.Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// programs are the commands that read the file.
func programs() []hostflags.Program { return append(serve.Programs(), dev.Program()) }

type object = map[string]any

// schema returns the JSON Schema of the file.
func schema() []byte {
	properties := object{}
	for _, p := range programs() {
		p.Flags().VisitAll(func(f *pflag.Flag) {
			if properties[f.Name] == nil && config.Settable(f) {
				properties[f.Name] = property(f)
			}
		})
	}
	doc, err := json.Marshal(object{
		"title":                "Configuration",
		"description":          "File of --config, in YAML or JSON: the flags of waybill dev, or of a service of waybill serve.",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	})
	if err != nil {
		panic("configfile: " + err.Error()) // strings only
	}
	return doc
}

// property returns the schema of a flag's value. YAML has values of several types for the same text.
func property(f *pflag.Flag) object {
	value := object{"type": []string{"string", "number", "boolean"}}
	switch f.Value.Type() {
	case "bool":
		value = object{"anyOf": []object{{"type": "boolean"}, {"enum": []string{"true", "false"}}}}
	case "int", "int64", "uint", "uint64":
		value = object{"anyOf": []object{{"type": "integer"}, {"type": "string", "pattern": "^-?[0-9]+$"}}}
	case "float64":
		value = object{"anyOf": []object{{"type": "number"}, {"type": "string", "pattern": "^-?[0-9.eE+-]+$"}}}
	case "duration":
		value = object{"anyOf": []object{{"const": 0}, {"type": "string", "pattern": `^-?(0|([0-9.]+(ns|us|µs|ms|s|m|h))+)$`}}}
	}
	if _, ok := f.Value.(pflag.SliceValue); ok {
		value = object{"anyOf": []object{value, {"type": "array", "items": value}}}
	}
	value["description"] = f.Usage
	return value
}
