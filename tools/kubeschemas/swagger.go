package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fromSwagger returns the schemas of all kinds of an OpenAPI document.
func fromSwagger(doc []byte) ([]schema, error) {
	var d struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return nil, err
	}
	var all []schema
	for _, def := range d.Definitions {
		kinds, _ := def["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 { // definitions of all groups, such as DeleteOptions, are not objects
			continue
		}
		kind, _ := kinds[0].(map[string]any)
		s := schema{group: text(kind["group"]), version: text(kind["version"]), kind: text(kind["kind"])}
		body, err := resolver{d.Definitions}.strict(def, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.kind, err)
		}
		s.body = body
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, errors.New("holds no kinds")
	}
	return all, nil
}

// fromCRD returns the schemas of all served versions of a CustomResourceDefinition.
func fromCRD(doc []byte) ([]schema, error) {
	var crd struct {
		Spec struct {
			Group string `yaml:"group"`
			Names struct {
				Kind string `yaml:"kind"`
			} `yaml:"names"`
			Versions []struct {
				Name   string `yaml:"name"`
				Served bool   `yaml:"served"`
				Schema struct {
					Root map[string]any `yaml:"openAPIV3Schema"`
				} `yaml:"schema"`
			} `yaml:"versions"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal(doc, &crd); err != nil {
		return nil, err
	}
	var all []schema
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		body, err := resolver{}.strict(v.Schema.Root, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, schema{crd.Spec.Group, v.Name, crd.Spec.Names.Kind, body})
	}
	if len(all) == 0 {
		return nil, errors.New("not a CustomResourceDefinition with a served version")
	}
	return all, nil
}

func text(v any) string { s, _ := v.(string); return s }

// resolver converts OpenAPI to plain JSON Schema.
type resolver struct{ definitions map[string]map[string]any }

// strict copies a schema with three changes. References are replaced by their targets,
// int-or-string fields accept both, and objects with named members allow no others. within lists
// the references followed so far: a recursive schema, such as that of CRDs, is expanded once.
func (r resolver) strict(in map[string]any, within []string) (map[string]any, error) {
	if ref := text(in["$ref"]); ref != "" {
		name := strings.TrimPrefix(ref, "#/definitions/")
		def, ok := r.definitions[name]
		if !ok {
			return nil, fmt.Errorf("%s is not defined", ref)
		}
		if slices.Contains(within, name) {
			return map[string]any{}, nil
		}
		return r.strict(def, append(slices.Clone(within), name))
	}
	out := map[string]any{}
	for key, v := range in {
		switch key {
		case "description", "default", "format", "title", "example":
		case "items", "additionalProperties":
			sub, ok := v.(map[string]any)
			if !ok {
				out[key] = v
				continue
			}
			s, err := r.strict(sub, within)
			if err != nil {
				return nil, err
			}
			out[key] = s
		case "properties":
			members, _ := v.(map[string]any)
			props := map[string]any{}
			for name, m := range members {
				member, _ := m.(map[string]any)
				s, err := r.strict(member, within)
				if err != nil {
					return nil, err
				}
				props[name] = s
			}
			out[key] = props
		default:
			if !strings.HasPrefix(key, "x-kubernetes-") {
				out[key] = v
			}
		}
	}
	if in["format"] == "int-or-string" || in["x-kubernetes-int-or-string"] == true {
		return map[string]any{"type": []string{"integer", "string"}}, nil
	}
	_, named := out["properties"]
	_, more := out["additionalProperties"]
	if named && !more && in["x-kubernetes-preserve-unknown-fields"] != true {
		out["additionalProperties"] = false
	}
	return out, nil
}
