package lint

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"waybill.dev/waybill/internal/cli/render"
	"waybill.dev/waybill/internal/version"
)

// root is the folder that reports for code hosts name files by.
type root string

// sourceRoot returns the repository of the working directory, else that directory.
func sourceRoot() root {
	here, err := os.Getwd()
	if err != nil {
		return ""
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return root(dir)
		}
		if dir == filepath.Dir(dir) {
			return root(here)
		}
	}
}

// inside returns the path of a file below the folder, with slashes; false if the file is elsewhere.
func (r root) inside(file string) (string, bool) {
	abs, err := filepath.Abs(file)
	if err != nil || r == "" {
		return "", false
	}
	rel, err := filepath.Rel(string(r), abs)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// nameOf is the path of a file below the folder, else the path as it is.
func (r root) nameOf(file string) string {
	if name, ok := r.inside(file); ok && file != "-" {
		return name
	}
	return filepath.ToSlash(file)
}

type object = map[string]any

// sourceRootID is the name of the folder that URIs are relative to, as code scanning of GitHub expects it.
const sourceRootID = "%SRCROOT%"

// artifact is the location of a file in a SARIF log.
func (r root) artifact(file string) object {
	if file == "-" {
		return object{"uri": "stdin"}
	}
	if name, ok := r.inside(file); ok {
		return object{"uri": (&url.URL{Path: name}).String(), "uriBaseId": sourceRootID}
	}
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	return object{"uri": (&url.URL{Scheme: "file", Path: filepath.ToSlash(file)}).String()}
}

// reportSARIF writes a log in the Static Analysis Results Interchange Format 2.1.0.
func reportSARIF(p *render.Printer, all []finding) error {
	from := sourceRoot()
	rules, results := []object{}, []object{}
	index := map[string]int{}
	for _, f := range all {
		if _, known := index[f.Rule]; !known {
			index[f.Rule] = len(rules)
			rules = append(rules, object{"id": f.Rule, "shortDescription": object{"text": describeRule(f.Rule)}})
		}
		level := "error"
		if f.Warning {
			level = "warning"
		}
		location := object{"physicalLocation": object{
			"artifactLocation": from.artifact(f.File),
			"region":           object{"startLine": max(f.Line, 1), "startColumn": max(f.Column, 1)},
		}}
		if f.Path != "" {
			location["logicalLocations"] = []object{{"fullyQualifiedName": f.Path}}
		}
		results = append(results, object{
			"ruleId": f.Rule, "ruleIndex": index[f.Rule], "level": level,
			"message": object{"text": render.Pointer(f.Path) + ": " + f.Message}, "locations": []object{location},
		})
	}
	doc, err := json.MarshalIndent(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"version": "2.1.0",
		"runs": []object{{
			"tool":       object{"driver": object{"name": version.Name, "version": version.Version, "rules": rules}},
			"columnKind": "unicodeCodePoints",
			"results":    results,
		}},
	}, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Out, "%s\n", doc)
	return err
}

// describeRule describes a rule in a few words.
func describeRule(rule string) string {
	if text := ruleTexts[rule]; text != "" {
		return text
	}
	return "The rule " + rule + " of JSON Schema or of the host."
}

var ruleTexts = map[string]string{
	"additionalProperties": "A member that the object does not have.",
	"capability":           "A model lacks what its node needs.",
	"condition":            "A condition that cannot be evaluated.",
	"cycle":                "Edges that lead back to their source.",
	"expression":           "An expression that does not compile.",
	"kind":                 "An envelope kind that the host does not have.",
	"limit":                "A value beyond a limit of the host.",
	"model":                "A model that the catalogue does not have.",
	"name":                 "A placeholder or a variable without a value.",
	"never-runs":           "A node that no run gets to.",
	"constant":             "A condition that is true or false in every run.",
	"no-effect":            "A member that the host does not use.",
	"node-type":            "A node type that the host does not have.",
	"port":                 "A port that the node type does not have.",
	"prompt":               "A prompt that is missing or cannot be composed.",
	"provider":             "A provider that the host does not have.",
	"reference":            "A reference to something that does not exist.",
	"regex":                "A regular expression that does not compile.",
	"required":             "A member is missing.",
	"trigger":              "A trigger that the host does not carry out.",
	"unique":               "An id that is used twice.",
	"value-type":           "A value of a type that does not fit.",
	ruleKind:               "A file that is no envelope kind.",
	rulePack:               "A file that does not belong to a pack.",
	ruleSettings:           "A settings file that a host rejects.",
	ruleTemplate:           "A file that is no prompt template.",
	rulePackDoubt:          "A part of a pack without effect, or a probable mistake in one.",
	ruleTemplateDoubt:      "A probable mistake in a prompt template.",
}
