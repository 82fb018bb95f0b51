package workflow_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/protocol/workflow"
)

// rich uses every member a definition may have.
const rich = `{
	"id": "rich", "name": "Rich", "version": "1.2", "description": "d", "type": "t", "isActive": false, "status": "draft",
	"tenantId": "t1", "scopeId": "s1", "slug": "rich-1", "createdAt": "2026-05-01T12:00:00Z", "updatedAt": "2026-05-01T12:00:00.5Z",
	"nodes": [
		{"id": "a", "typeId": "core.noop", "name": "A", "position": {"x": 0, "y": -1.5}, "config": {"big": 12345678901234567890},
		 "inputs": {"s": {"type": "static", "value": null}, "e": {"type": "expression", "expression": "1 + 1"},
			"v": {"type": "variable", "variableName": "who", "optional": true}},
		 "credentialsRef": "c", "settings": {"maxRetries": 2.0}, "outputRole": "primary", "disabled": true, "notes": "n", "groupId": "g",
		 "agent": {"agentId": "core.chat", "name": "n", "modelClass": "chat", "memoryRef": "m", "version": "1", "sourceManifestId": "x"},
		 "envelopeContract": {"accepts": []}, "artifactType": "at", "cardType": "ct", "outputSensitivity": {"out": true}},
		{"id": "b", "typeId": "core.identity", "name": "B", "position": {"x": 1, "y": 2}, "config": {},
		 "inputs": {"c": {"type": "connection", "nodeId": "a", "outputKey": "out", "optional": false}}}
	],
	"edges": [
		{"id": "e1", "sourceNodeId": "a", "sourceOutput": "out", "targetNodeId": "b", "targetInput": "in", "label": "l",
		 "triggerRule": "any_failed", "condition": {"type": "regex", "left": "status", "right": "^ok$"}}
	],
	"triggers": [{"id": "t", "type": "manual", "name": "n", "description": "d", "config": {}, "enabled": false, "nodeId": "a", "eventType": "e"}],
	"variables": [
		{"name": "who", "type": "string", "description": "d", "required": true, "defaultValue": "you", "sensitive": true},
		{"name": "n", "type": "number"}
	],
	"groups": [{"id": "g", "name": "G", "color": "red", "collapsed": true, "nodeIds": ["a"], "position": {"x": 0, "y": 0}, "size": {"width": 1, "height": 2}}],
	"channels": {
		"log": {"reducer": "append", "schema": {}, "default": [], "maxSize": 1.0, "ttlMs": 1e3, "options": {}, "access": "private",
			"schemaVersion": 3, "compatibleWith": [1, 2], "sensitive": true},
		"mine": {"reducer": "vendor.acme.sum", "access": {"readers": ["a", "core.ai.*"], "writers": ["*"]}}
	},
	"configurableSchema": {"type": "object", "properties": {"limit": {"type": "integer"}}, "required": ["limit"]},
	"defaults": {"promptRefs": {"system": "prompt:writer@1.2.0", "user": {"templateId": "t", "libraryId": "l", "version": "1.0.0", "variableOverrides": {}},
		"few-shot": "prompt:x", "schema-hint": "prompt:y"}},
	"metadata": {"createdBy": "x", "createdAt": "2026-05-01T12:00:00Z", "updatedBy": "x", "updatedAt": "2026-05-01T12:00:00Z", "tags": ["one"],
		"category": "c", "author": "a", "codeVersion": "1", "customizedAt": "2026-05-01T12:00:00Z", "customizedBy": "x", "forkedFrom": "f",
		"clonedFrom": "c", "clonedAt": "2026-05-01T12:00:00Z", "customProperties": {}, "complianceClass": "phi",
		"complianceConfig": {"maskingMode": "hash", "more": 1}, "own": [1]},
	"settings": {"timeout": 60000, "maxRetries": 3, "logLevel": "warn", "maxLoopbackIterations": 7, "own": true, "TIMEOUT": 1},
	"acceptsInheritedArtifacts": [{}]
}`

// small returns a minimal definition after a change.
func small(t testing.TB, change func(map[string]any)) []byte {
	t.Helper()
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"id":"small","name":"S","version":"1","nodes":[],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`), &doc))
	doc["nodes"] = []any{node("a"), node("b"), node("c")}
	change(doc)
	b, err := json.Marshal(doc)
	require.NoError(t, err)
	return b
}

func node(id string) map[string]any {
	return map[string]any{"id": id, "typeId": "core.noop", "name": id, "position": map[string]any{"x": 0, "y": 0}, "config": map[string]any{}, "inputs": map[string]any{}}
}

func edge(id, from, to string) map[string]any {
	return map[string]any{"id": id, "sourceNodeId": from, "targetNodeId": to}
}

// parse calls Parse for a valid definition.
func parse(t testing.TB, doc []byte) *workflow.Definition {
	t.Helper()
	d, problems := workflow.Parse(doc)
	require.Empty(t, problems)
	require.NotNil(t, d)
	return d
}

func TestParse_ReadsEveryMember(t *testing.T) {
	t.Parallel()
	d := parse(t, []byte(rich))
	require.Equal(t, rich, string(d.Raw))
	require.Equal(t, []string{"rich", "Rich", "1.2", "d", "t", "draft", "t1", "s1", "rich-1"},
		[]string{d.ID, d.Name, d.Version, d.Description, d.Type, d.Status, d.TenantID, d.ScopeID, d.Slug})
	require.False(t, *d.IsActive)

	a := d.Nodes[0]
	require.JSONEq(t, `{"big":12345678901234567890}`, string(a.Config))
	require.Equal(t, "null", string(a.Inputs["s"].Value))
	require.Equal(t, workflow.PortValue{Type: workflow.PortVariable, VariableName: "who", Optional: true}, a.Inputs["v"])
	require.Equal(t, workflow.PortValue{Type: workflow.PortConnection, NodeID: "a", OutputKey: "out"}, d.Nodes[1].Inputs["c"])
	require.True(t, a.Disabled)
	require.True(t, a.OutputSensitivity["out"])
	retries, ok := a.MaxRetries()
	require.True(t, ok)
	require.EqualValues(t, 2, retries)
	_, ok = d.Nodes[1].MaxRetries()
	require.False(t, ok)

	require.Equal(t, workflow.AnyFailed, d.Edges[0].TriggerRule)
	require.Equal(t, &workflow.EdgeCondition{Type: workflow.ConditionRegex, Left: "status", Right: json.RawMessage(`"^ok$"`)}, d.Edges[0].Condition)
	require.False(t, d.Triggers[0].IsEnabled())
	require.Equal(t, `"you"`, string(d.Variables[0].DefaultValue))
	require.Nil(t, d.Variables[1].DefaultValue)
	require.Equal(t, `"prompt:x"`, string(d.Defaults.PromptRefs["few-shot"]))

	log := d.Channels["log"]
	require.EqualValues(t, []int64{1, 1000, 3}, []int64{log.MaxSize, log.TTLMillis, log.SchemaVersion})
	require.Equal(t, []int64{1, 2}, log.CompatibleWith)
	require.True(t, log.Sensitive)
	require.EqualValues(t, 1, d.Channels["mine"].SchemaVersion)

	require.Equal(t, workflow.Settings{TimeoutMillis: 60000, MaxRetries: 3, LogLevel: "warn", MaxLoopbackIterations: 7}, d.Settings)
	require.Equal(t, workflow.Metadata{Tags: []string{"one"}, ComplianceClass: "phi", MaskingMode: "hash"}, d.Metadata)
}

func TestParse_FillsInDefaults(t *testing.T) {
	t.Parallel()
	d := parse(t, small(t, func(doc map[string]any) {
		bare := edge("e2", "b", "c")
		bare["condition"] = map[string]any{"expression": "true"}
		always := edge("e3", "a", "c")
		always["condition"] = map[string]any{}
		doc["edges"] = []any{edge("e1", "a", "b"), bare, always}
		doc["triggers"] = []any{map[string]any{"id": "t", "type": "manual"}}
	}))
	require.Equal(t, workflow.Edge{ID: "e1", SourceNodeID: "a", SourceOutput: "output", TargetNodeID: "b", TargetInput: "input", TriggerRule: workflow.AllSuccess}, d.Edges[0])
	require.Equal(t, workflow.ConditionExpression, d.Edges[1].Condition.Type)
	require.Equal(t, workflow.ConditionAlways, d.Edges[2].Condition.Type)
	require.True(t, d.Triggers[0].IsEnabled())
	require.Equal(t, workflow.Settings{MaxLoopbackIterations: 5}, d.Settings)
	require.Equal(t, workflow.Metadata{ComplianceClass: "public"}, d.Metadata)
	require.Nil(t, d.IsActive)
}

func TestParse_KeepsItsOwnCopy(t *testing.T) {
	t.Parallel()
	doc := []byte(rich)
	d := parse(t, doc)
	digest := d.Digest()
	for i := range doc {
		doc[i] = 'x'
	}
	require.Equal(t, rich, string(d.Raw))
	require.Equal(t, digest, d.Digest())
}

func TestDigest_DependsOnTheBytes(t *testing.T) {
	t.Parallel()
	d := parse(t, []byte(rich))
	require.Regexp(t, `^sha256:[0-9a-f]{64}$`, d.Digest())
	require.NotEqual(t, d.Digest(), parse(t, []byte(rich+"\n")).Digest())
}

func TestParse_ReportsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	d, problems := workflow.Parse(small(t, func(doc map[string]any) {
		doc["name"], doc["extra"] = "", 1
		doc["edges"] = []any{edge("e1", "a", "nowhere"), edge("e1", "b", "c"), edge("e3", "c", "b")}
		doc["variables"] = []any{map[string]any{"name": "v", "type": "string", "defaultValue": 1}}
	}))
	require.Nil(t, d)
	var got []string
	for _, p := range problems {
		got = append(got, p.Path+" "+p.Rule)
		require.NotEmpty(t, p.Message)
	}
	require.Equal(t, []string{
		"/edges/0/targetNodeId reference", "/edges/1/id unique", "/edges/2 cycle", "/extra additionalProperties", "/name minLength",
		"/variables/0/defaultValue value-type",
	}, got)
	require.Equal(t, map[string]any{"path": "/name", "rule": "minLength", "message": "want at least 1 characters"}, workflow.AsDetails(problems)[4])
}

func TestParse_CapsProblems(t *testing.T) {
	t.Parallel()
	_, problems := workflow.Parse(small(t, func(doc map[string]any) {
		var edges []any
		for i := range 500 {
			edges = append(edges, edge(fmt.Sprint("e", i), "x", "y"))
		}
		doc["edges"] = edges
	}))
	require.Len(t, problems, 64)
}

func TestParse_ReportsProblems(t *testing.T) {
	t.Parallel()
	type doc = map[string]any
	condition := func(c doc) func(doc) {
		return func(d doc) {
			e := edge("e", "a", "b")
			e["condition"] = c
			d["edges"] = []any{e}
		}
	}
	port := func(p doc) func(doc) {
		return func(d doc) { d["nodes"].([]any)[0].(doc)["inputs"] = doc{"in/1": p} }
	}
	tests := map[string]struct {
		change              func(doc)
		path, rule, message string
	}{
		"node id twice": {
			change:  func(d doc) { d["nodes"] = []any{node("a"), node("a")} },
			path:    "/nodes/1/id",
			rule:    "unique",
			message: "at /nodes/0/id",
		},
		"trigger id twice": {
			change:  func(d doc) { d["triggers"] = []any{doc{"id": "t", "type": "manual"}, doc{"id": "t", "type": "event"}} },
			path:    "/triggers/1/id",
			rule:    "unique",
			message: "at /triggers/0/id",
		},
		"variable twice": {
			change: func(d doc) {
				d["variables"] = []any{doc{"name": "v", "type": "string"}, doc{"name": "v", "type": "string"}}
			},
			path:    "/variables/1/name",
			rule:    "unique",
			message: "at /variables/0/name",
		},
		"edge from nowhere": {
			change:  func(d doc) { d["edges"] = []any{edge("e", "x", "a")} },
			path:    "/edges/0/sourceNodeId",
			rule:    "reference",
			message: "nodes[].id",
		},
		"cycle of one": {
			change:  func(d doc) { d["edges"] = []any{edge("e", "a", "a")} },
			path:    "/edges/0",
			rule:    "cycle",
			message: "a->a;",
		},
		"cycle of three": {
			change:  func(d doc) { d["edges"] = []any{edge("1", "b", "c"), edge("2", "c", "a"), edge("3", "a", "b")} },
			path:    "/edges/1",
			rule:    "cycle",
			message: "a->b->c->a;",
		},
		"connection nowhere": {
			change:  port(doc{"type": "connection", "nodeId": "x", "outputKey": "o"}),
			path:    "/nodes/0/inputs/in~11/nodeId",
			rule:    "reference",
			message: "nodes[].id",
		},
		"port of no type": {
			change:  port(doc{"value": 1}),
			path:    "/nodes/0/inputs/in~11",
			rule:    "required",
			message: "type",
		},
		"port of another type": {
			change:  port(doc{"type": "magic"}),
			path:    "/nodes/0/inputs/in~11/type",
			rule:    "enum",
			message: `"static", "expression", "connection", "variable"`,
		},
		"port lacks a member": {
			change:  port(doc{"type": "static"}),
			path:    "/nodes/0/inputs/in~11",
			rule:    "required",
			message: "value",
		},
		"port has one too many": {
			change:  port(doc{"type": "static", "value": 1, "optional": true}),
			path:    "/nodes/0/inputs/in~11/optional",
			rule:    "additionalProperties",
			message: "allowed: type, value",
		},
		"default of other type": {
			change:  func(d doc) { d["variables"] = []any{doc{"name": "v", "type": "object", "defaultValue": []any{}}} },
			path:    "/variables/0/defaultValue",
			rule:    "value-type",
			message: "want an object, the variable's type, got an array",
		},
		"null default": {
			change:  func(d doc) { d["variables"] = []any{doc{"name": "v", "type": "string", "defaultValue": nil}} },
			path:    "/variables/0/defaultValue",
			rule:    "value-type",
			message: "remove the member",
		},
		"comparison of nothing": {
			change:  condition(doc{"left": "a"}),
			path:    "/edges/0/condition",
			rule:    "condition",
			message: "add type",
		},
		"expression missing": {
			change:  condition(doc{"type": "expression"}),
			path:    "/edges/0/condition",
			rule:    "condition",
			message: "needs the member expression",
		},
		"expression and left": {
			change:  condition(doc{"expression": "true", "left": "a"}),
			path:    "/edges/0/condition",
			rule:    "condition",
			message: "are ignored with expression",
		},
		"left missing": {
			change:  condition(doc{"type": "equals", "right": 1}),
			path:    "/edges/0/condition",
			rule:    "condition",
			message: "needs the member left",
		},
		"right missing": {
			change:  condition(doc{"type": "contains", "left": "a"}),
			path:    "/edges/0/condition",
			rule:    "condition",
			message: "needs the member right",
		},
		"expression too many": {
			change:  condition(doc{"type": "notEquals", "left": "a", "right": 1, "expression": "x"}),
			path:    "/edges/0/condition",
			rule:    "condition",
			message: "is ignored with type notEquals",
		},
		"regex not RE2": {
			change:  condition(doc{"type": "regex", "left": "a", "right": "(?=x)"}),
			path:    "/edges/0/condition/right",
			rule:    "regex",
			message: "RE2",
		},
		"regex not a string": {
			change:  condition(doc{"type": "regex", "left": "a", "right": nil}),
			path:    "/edges/0/condition/right",
			rule:    "regex",
			message: "got null",
		},
		"configurableSchema": {
			change:  func(d doc) { d["configurableSchema"] = doc{"properties": doc{"a": doc{"type": "text"}}} },
			path:    "/configurableSchema/properties/a/type",
			rule:    "schema",
			message: "not a JSON Schema",
		},
		"schema from elsewhere": {
			change:  func(d doc) { d["configurableSchema"] = doc{"$ref": "http://example.com/x"} },
			path:    "/configurableSchema",
			rule:    "schema",
			message: "http://example.com/x",
		},
		"agent pinned twice": {
			change: func(d doc) {
				d["nodes"].([]any)[1].(doc)["agent"] = doc{"agentId": "core.x", "version": "1", "channel": "stable"}
			},
			path:    "/nodes/1/agent/channel",
			rule:    "exclusive",
			message: "keep one",
		},
		"node retries": {
			change:  func(d doc) { d["nodes"].([]any)[1].(doc)["settings"] = doc{"maxRetries": -1} },
			path:    "/nodes/1/settings/maxRetries",
			rule:    "max-retries",
			message: "at least 0",
		},
		"node retries as text": {
			change:  func(d doc) { d["nodes"].([]any)[1].(doc)["settings"] = doc{"maxRetries": "1"} },
			path:    "/nodes/1/settings/maxRetries",
			rule:    "max-retries",
			message: "integer",
		},
		"settings": {
			change:  func(d doc) { d["settings"] = doc{"timeout": -1} },
			path:    "/settings/timeout",
			rule:    "minimum",
			message: "at least 0",
		},
		"member in other case": {
			change:  func(d doc) { d["Type"] = "x" },
			path:    "/Type",
			rule:    "additionalProperties",
			message: "did you mean type? allowed: $schema, acceptsInheritedArtifacts",
		},
		"no nodes": {
			change:  func(d doc) { d["nodes"] = []any{} },
			path:    "/nodes",
			rule:    "minItems",
			message: "at least 1",
		},
		"access": {
			change:  func(d doc) { d["channels"] = doc{"c": doc{"reducer": "append", "access": "secret"}} },
			path:    "/channels/c/access",
			rule:    "enum",
			message: `"public", "private"`,
		},
		"reducer": {
			change:  func(d doc) { d["channels"] = doc{"c": doc{"reducer": "sum"}} },
			path:    "/channels/c/reducer",
			rule:    "pattern",
			message: "vendor",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, problems := workflow.Parse(small(t, tc.change))
			require.Nil(t, d)
			require.Len(t, problems, 1, "%v", problems)
			require.Equal(t, tc.path, problems[0].Path)
			require.Equal(t, tc.rule, problems[0].Rule)
			require.Contains(t, problems[0].Message, tc.message)
		})
	}
}

func TestParse_RejectsOtherDocuments(t *testing.T) {
	t.Parallel()
	for doc, rule := range map[string]string{
		``: "json", `{`: "json", `{"id":1,"id":2}`: "json", `[]`: "type", `null`: "type", `"x"`: "type", `{}`: "required",
		`{"settings":{"timeout":1e-999999999}}`: "number",
		strings.Repeat("[", 70):                 "json",
		`"` + strings.Repeat("x", 2<<20) + `"`:  "json",
	} {
		d, problems := workflow.Parse([]byte(doc))
		require.Nil(t, d)
		require.NotEmpty(t, problems)
		require.Equal(t, rule, problems[0].Rule, "%.60s: %v", doc, problems)
	}
}

func TestParse_LetsLoopNodesCloseCycles(t *testing.T) {
	t.Parallel()
	for _, typeID := range []string{workflow.TypeDispatch, workflow.TypeSupervisor} {
		parse(t, small(t, func(doc map[string]any) {
			doc["nodes"].([]any)[1].(map[string]any)["typeId"] = typeID
			doc["edges"] = []any{edge("1", "a", "b"), edge("2", "b", "c"), edge("3", "c", "a"), edge("4", "b", "b")}
		}))
	}
}

func TestParse_ShortensLongCycles(t *testing.T) {
	t.Parallel()
	_, problems := workflow.Parse(small(t, func(doc map[string]any) {
		var nodes, edges []any
		for i := range 1000 {
			nodes = append(nodes, node(fmt.Sprint("n", i)))
			edges = append(edges, edge(fmt.Sprint("e", i), fmt.Sprint("n", i), fmt.Sprint("n", (i+1)%1000)))
		}
		doc["nodes"], doc["edges"] = nodes, edges
	}))
	require.Len(t, problems, 1)
	require.Contains(t, problems[0].Message, "n0->n1->n2")
	require.Contains(t, problems[0].Message, "->...->n0;")
	require.Less(t, len(problems[0].Message), 300)
}

func TestParse_AllowsUndeclaredVariables(t *testing.T) {
	t.Parallel()
	parse(t, small(t, func(doc map[string]any) {
		doc["nodes"].([]any)[0].(map[string]any)["inputs"] = map[string]any{"p": map[string]any{"type": "variable", "variableName": "from-inputs"}}
	}))
}

func TestParse_AcceptsThePublishedFixtures(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(schematest.Dir(t), "fixtures", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		doc, err := os.ReadFile(file)
		require.NoError(t, err)
		d, problems := workflow.Parse(doc)
		require.Empty(t, problems, file)
		require.Equal(t, strings.TrimSuffix(filepath.Base(file), ".json"), d.ID)
		require.Len(t, workflow.Compile(d).Steps, len(d.Nodes))
	}
}

func TestCheckConfigurable_AppliesTheAuthorsSchema(t *testing.T) {
	t.Parallel()
	d := parse(t, []byte(rich))
	require.Empty(t, d.CheckConfigurable(json.RawMessage(`{"limit":1.0}`)))

	problems := d.CheckConfigurable(json.RawMessage(`{"limit":"x"}`))
	require.Equal(t, []workflow.Problem{{Path: "/configurable/limit", Rule: "type", Message: "want type integer"}}, problems)

	problems = d.CheckConfigurable(nil)
	require.Equal(t, "/configurable", problems[0].Path)
	require.Equal(t, "required", problems[0].Rule)

	open := parse(t, small(t, func(map[string]any) {}))
	require.Empty(t, open.CheckConfigurable(json.RawMessage(`{"anything":1}`)))
}
