// Package editorschema renders the JSON Schemas of the files that authors and operators write, for
// editors. The host checks files with the same schemas; that of workflows adds the config of each node
// type.
package editorschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/cli/configfile"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

const dialect = "https://json-schema.org/draft/2020-12/schema"

// Base is the prefix of the schemas' ids.
const Base = "https://waybill.dev/schemas/"

type object = map[string]any

// All returns the schemas by file name.
func All() (map[string][]byte, error) {
	types := node.Builtin().And(node.PeerTypes()...)
	docs := map[string][]byte{
		"workflow.schema.json":          nil,
		"pack.schema.json":              pack.ManifestSchema(),
		"pack-waybill.schema.json":      pack.OwnSchema(),
		"envelope-contract.schema.json": pack.ContractSchema(),
		"kind.schema.json":              schema.AuthorSchema(),
		"prompt-template.schema.json":   prompt.TemplateSchema(),
	}
	for _, k := range configfile.Kinds() {
		docs[k.Name+".schema.json"] = k.Schema
	}
	for _, id := range types.IDs() {
		docs["config/"+id+".schema.json"] = types[id].ConfigSchema()
	}
	var err error
	if docs["workflow.schema.json"], err = Workflow(types); err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, doc := range docs {
		if out[name], err = render(name, doc); err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
	}
	return out, nil
}

// render gives a schema its id and indents it.
func render(name string, doc []byte) ([]byte, error) {
	var o object
	if err := json.Unmarshal(doc, &o); err != nil {
		return nil, err
	}
	o["$schema"], o["$id"] = dialect, Base+name
	out, err := json.MarshalIndent(o, "", "  ")
	return append(out, '\n'), err
}

// Workflow returns the schema of workflow files with the configs of the given node types. The config of
// other types may have any members.
func Workflow(types node.Catalog) ([]byte, error) {
	var root object
	if err := json.Unmarshal(workflow.SchemaJSON, &root); err != nil {
		return nil, err
	}
	defs, _ := root["$defs"].(object)
	n, _ := defs["node"].(object)
	properties, _ := n["properties"].(object)
	if properties == nil {
		return nil, fmt.Errorf("the schema of workflows has no node")
	}
	typeID, _ := properties["typeId"].(object)
	typeID["anyOf"] = []any{object{"enum": types.IDs()}, object{"type": "string"}}
	properties["settings"] = object{"$ref": "#/$defs/nodeSettings"}
	properties["envelopeContract"] = object{"$ref": "#/$defs/envelopeContract"}
	var own object
	if err := json.Unmarshal(settingsSchema, &own); err != nil {
		return nil, err
	}
	maps.Copy(defs, own)
	var rules []any
	for _, id := range types.IDs() {
		doc := types[id].ConfigSchema()
		if doc == nil {
			continue
		}
		name := "config:" + id
		config, err := moved(doc, name)
		if err != nil {
			return nil, fmt.Errorf("config of %s: %w", id, err)
		}
		defs[name] = config
		rules = append(rules, object{
			"if":   object{"properties": object{"typeId": object{"const": id}}, "required": []string{"typeId"}},
			"then": object{"properties": object{"config": object{"$ref": "#/$defs/" + name}}},
		})
	}
	n["allOf"] = rules
	return json.Marshal(root)
}

// moved returns a schema for a place among the definitions of another one.
func moved(doc []byte, name string) (object, error) {
	text := strings.ReplaceAll(string(doc), `"#/$defs/`, `"#/$defs/`+name+`/$defs/`)
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return nil, err
	}
	delete(o, "$schema")
	delete(o, "$id")
	return o, nil
}

// settingsSchema describes objects that the host checks in code: a test compares the results.
var settingsSchema = []byte(`{
  "nodeSettings": {
    "type": "object",
    "description": "Retries, time limits and other settings that every node type has. Other hosts may have more.",
    "properties": {
      "maxRetries": { "type": "integer", "minimum": 0, "description": "Retries after retryable errors; the default is the workflow's." },
      "timeoutMs": { "type": "integer", "minimum": 1, "maximum": 604800000, "description": "Time limit of an attempt, for nodes that make calls." },
      "retry": {
        "type": "object",
        "additionalProperties": false,
        "properties": {
          "maxRetries": { "type": "integer", "minimum": 0, "description": "The same as settings.maxRetries." },
          "backoffMs": { "type": "integer", "minimum": 1, "maximum": 86400000, "default": 500, "description": "Wait before the first retry." },
          "multiplier": { "type": "number", "minimum": 1, "maximum": 10, "default": 2, "description": "Factor of the wait for each further retry." },
          "maxBackoffMs": { "type": "integer", "minimum": 1, "maximum": 86400000, "default": 30000, "description": "Longest wait." },
          "onCapacity": { "enum": ["wait", "fail"], "default": "wait", "description": "What happens if the vendor has no capacity." }
        }
      },
      "questions": {
        "type": "object",
        "additionalProperties": false,
        "properties": {
          "timeoutMs": { "type": "integer", "minimum": 0, "maximum": 31622400000, "description": "Time limit of an answer to a question of the model; 0 means no limit." },
          "onDecline": { "enum": ["continue", "fail"], "default": "continue", "description": "What happens if the answer is declined." }
        }
      },
      "onUnknownOutcome": { "enum": ["retry", "fail", "ask"], "description": "What happens to a call whose dispatcher died before it recorded the result." }
    }
  },
  "envelopeContract": {
    "type": "object",
    "description": "Envelope kinds that the node accepts in addition to the universal ones.",
    "required": ["accepts"],
    "additionalProperties": false,
    "patternProperties": { "^x-": true },
    "properties": {
      "accepts": { "type": "array", "uniqueItems": true, "items": { "type": "string", "minLength": 1 } },
      "refusalMode": { "enum": ["fail-node", "discard-and-warn"], "default": "fail-node" },
      "alwaysAccepted": { "type": "array", "uniqueItems": true, "items": { "enum": ["clarification.request", "schema.request", "schema.response", "error"] } }
    }
  }
}`)

// Names lists the file names, sorted.
func Names(all map[string][]byte) []string { return slices.Sorted(maps.Keys(all)) }
