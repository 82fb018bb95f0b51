package node

import (
	"cmp"
	"embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// The configs of the host's own types. A test compares their members with those of the schemas.
type (
	conditionalConfig struct {
		Expression *string         `json:"expression"`
		Condition  json.RawMessage `json:"condition"`
	}
	mergeConfig struct {
		Mode string `json:"mode"`
	}
	setVariableConfig struct {
		Name         string          `json:"name"`
		VariableName string          `json:"variableName"` // the same
		Value        json.RawMessage `json:"value"`
	}
	getVariableConfig struct {
		Name         string          `json:"name"`
		VariableName string          `json:"variableName"` // the same
		Default      json.RawMessage `json:"default"`
	}
	loopConfig struct {
		Expression    string          `json:"expression"`
		Items         json.RawMessage `json:"items"`
		Count         json.RawMessage `json:"count"`
		Until         *string         `json:"until"`
		Initial       json.RawMessage `json:"initial"`
		MaxIterations json.RawMessage `json:"maxIterations"`
	}
	channelConfig struct {
		Name    string          `json:"channelName"`
		Reducer string          `json:"reducer"`
		TTL     json.RawMessage `json:"ttlMs"`
		Value   json.RawMessage `json:"value"`
	}
	failConfig struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	delayConfig struct {
		DelayMs    json.RawMessage `json:"delayMs"`
		Ms         json.RawMessage `json:"ms"`
		DurationMs json.RawMessage `json:"durationMs"`
	}
	costConfig struct {
		Attrs json.RawMessage `json:"attrs"`
	}
	secretConfig struct {
		ID string `json:"secretId"`
	}
	identityConfig struct {
		Twice bool `json:"emitDuplicateMessageId"`
	}
)

func (c setVariableConfig) variable() string { return cmp.Or(c.Name, c.VariableName) }

func (c getVariableConfig) variable() string { return cmp.Or(c.Name, c.VariableName) }

// readConfig reads a config; absent and empty are the zero value.
func readConfig[T any](config json.RawMessage) (c T, err error) {
	if len(config) > 0 {
		err = strictjson.Read(config, &c)
	}
	return c, err
}

// configFiles are the schemas of the configs, by typeId.
//
//go:embed config
var configFiles embed.FS

// ownSchemas are compiled on first use; a test compiles them.
var ownSchemas = sync.OnceValue(func() map[string]*schema.Schema {
	out := map[string]*schema.Schema{}
	compile := func(id string, doc []byte) {
		s, err := schema.Compile(id, doc)
		if err != nil {
			panic("node: the schema of a config: " + err.Error())
		}
		out[id] = s
	}
	files, err := configFiles.ReadDir("config")
	if err != nil {
		panic("node: " + err.Error())
	}
	for _, f := range files {
		doc, err := configFiles.ReadFile("config/" + f.Name())
		if err != nil {
			panic("node: " + err.Error())
		}
		compile(strings.TrimSuffix(f.Name(), ".json"), doc)
	}
	for _, id := range []string{interrupt.TypeApprovalGate, interrupt.TypeClarificationGate, interrupt.TypeInterrupt} {
		compile(id, interrupt.ConfigSchema(id))
	}
	return out
})

// OwnSchema returns the closed schema of the config of a type that the host implements; nil for other
// types.
func OwnSchema(typeID string) *schema.Schema {
	if t, ok := coreTypes()[typeID]; ok {
		return t.schema
	}
	return ownSchemas()[typeID]
}

// Schema returns the closed schema of the type's config, or of that of the type that executes it.
func (t Type) Schema() *schema.Schema { return OwnSchema(t.Executes()) }

// ConfigSchema returns the document of the schema that the author's config is checked against: the
// pack's, else the host's. It is nil if there is none.
func (t Type) ConfigSchema() json.RawMessage {
	s := t.Schema()
	if t.Made != nil && t.Made.config != nil {
		s = t.Made.config
	}
	if s == nil {
		return nil
	}
	return s.Document()
}

// Members lists the members of the type's config; nil if they are unknown.
func (t Type) Members() []string {
	if s := t.Schema(); s != nil {
		return memberNames(s)
	}
	return nil
}

// LintConfig returns all problems of a config as its author writes it: those of CheckConfig, unknown
// members, and values that its type cannot use. Paths are relative to the config.
func (t Type) LintConfig(config json.RawMessage) []workflow.Problem {
	if len(config) == 0 {
		config = json.RawMessage(`{}`)
	}
	var out []workflow.Problem
	if t.Lint != nil { // its messages are better than those of the schema
		out = t.Lint(t.Configure(config))
	}
	for _, p := range t.schemaProblems(config) {
		if !slices.ContainsFunc(out, func(known workflow.Problem) bool { return known.Path == p.Path }) {
			out = append(out, p)
		}
	}
	return out
}

// schemaProblems returns the violations of the schemas of a pack and of the host.
func (t Type) schemaProblems(config json.RawMessage) []workflow.Problem {
	var out []workflow.Problem
	if t.Made != nil && t.Made.config != nil {
		out = append(workflow.Violations("", t.Made.config, config), t.unknownToPack(config)...)
	}
	own := t.Schema()
	if own == nil {
		return out
	}
	for _, p := range workflow.Violations("", own, t.Configure(config)) {
		if t.Made == nil || p.Rule != workflow.RuleUnknownMember || strings.Count(p.Path, "/") > 1 {
			out = append(out, p)
		}
	}
	if t.Made != nil && t.Made.config == nil { // the pack leaves the config to its base
		out = append(out, unknownMembers(config, memberNames(own))...)
	}
	return out
}

// unknownToPack returns the members that neither the pack's schema nor the base has. A schema that
// decides about further members itself is left alone.
func (t Type) unknownToPack(config json.RawMessage) []workflow.Problem {
	var own map[string]json.RawMessage
	if json.Unmarshal(t.Made.config.Document(), &own) != nil {
		return nil
	}
	for _, keyword := range []string{"additionalProperties", "unevaluatedProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"} {
		if own[keyword] != nil {
			return nil
		}
	}
	known := memberNames(t.Made.config)
	if s := t.Schema(); s != nil {
		known = append(known, memberNames(s)...)
	}
	slices.Sort(known)
	return unknownMembers(config, slices.Compact(known))
}

// memberNames lists the members that a schema of an object names, sorted.
func memberNames(s *schema.Schema) []string {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(s.Document(), &object) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(object.Properties))
}

func unknownMembers(config json.RawMessage, known []string) []workflow.Problem {
	members, _ := configMembers(config)
	var out []workflow.Problem
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "x-") {
			out = append(out, workflow.Problem{
				Path: "/" + jsonpointer.Escape(name), Rule: workflow.RuleUnknownMember, Message: schema.UnknownMember(name, known, members),
			})
		}
	}
	return out
}
