package workflow_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/protocol/workflow"
)

// published compiles the protocol's own schema of definitions.
func published(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir := filepath.Join(schematest.Dir(t), "schemas")
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for _, name := range []string{"workflow-definition", "agent-ref", "prompt-ref"} {
		b, err := os.ReadFile(filepath.Join(dir, name+".schema.json"))
		require.NoError(t, err)
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		require.NoError(t, err)
		require.NoError(t, c.AddResource("https://openwop.dev/spec/v1/"+name+".schema.json", doc))
	}
	s, err := c.Compile("https://openwop.dev/spec/v1/workflow-definition.schema.json")
	require.NoError(t, err)
	return s
}

// completed returns a definition with the members that the published schema requires and this host does
// not, because they have a default or do not affect runs.
func completed(v any) any {
	root, ok := v.(map[string]any)
	if !ok {
		return v
	}
	fill := func(o map[string]any, members map[string]any) {
		for name, value := range members {
			if _, has := o[name]; !has {
				o[name] = value
			}
		}
	}
	each := func(list any, members map[string]any) {
		all, _ := list.([]any)
		for _, element := range all {
			if o, ok := element.(map[string]any); ok {
				fill(o, members)
			}
		}
	}
	empty, point := map[string]any{}, map[string]any{"x": 0, "y": 0}
	fill(root, map[string]any{"edges": []any{}, "triggers": []any{}, "variables": []any{}, "metadata": empty, "settings": empty})
	each(root["nodes"], map[string]any{"name": "n", "position": point, "config": empty, "inputs": empty})
	each(root["groups"], map[string]any{"position": point, "size": map[string]any{"width": 1, "height": 1}})
	if s, isText := root["$schema"].(string); isText && s != "" {
		delete(root, "$schema")
	}
	return root
}

// semantic lists the rules by which Parse may reject documents that the schema accepts.
var semantic = []string{
	workflow.RuleUnique, workflow.RuleReference, workflow.RuleCycle, workflow.RuleCondition, workflow.RuleRegex,
	workflow.RuleValueType, workflow.RuleSchema, workflow.RuleMaxRetries, workflow.RuleContract, workflow.RuleChannel, workflow.RuleSchedule,
	workflow.RuleRetention,
	"maxLength", // of node ids, which the schema does not limit
}

// allowed reports whether Parse may reject a document that the schema accepts: for a semantic rule, a
// misspelled setting, or a member of an envelope contract, which the schema leaves open.
func allowed(p workflow.Problem) bool {
	open := strings.Contains(p.Path, "/settings/") || strings.Contains(p.Path, "/envelopeContract/")
	return slices.Contains(semantic, p.Rule) || p.Rule == workflow.RuleUnknownMember && open
}

// Parse accepts a document exactly if the published schema does, apart from semantic checks. Each
// mutation changes one member of a definition that uses everything.
func TestParse_AgreesWithThePublishedSchema(t *testing.T) {
	t.Parallel()
	reference := published(t)
	refused := 0
	mutants := mutations(t)
	for _, m := range mutants {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.doc))
		require.NoError(t, err)
		invalid := reference.Validate(completed(v))
		_, problems := workflow.Parse(m.doc)
		if invalid != nil {
			refused++
			require.NotEmpty(t, problems, "%s: Parse accepts what the published schema rejects: %v", m.what, invalid)
			continue
		}
		for _, p := range problems {
			require.True(t, allowed(p), "%s: Parse rejects what the published schema accepts: %v", m.what, p)
		}
	}
	require.Greater(t, len(mutants), 1000)
	require.Greater(t, refused, 500)
}

type mutant struct {
	what string
	doc  []byte
}

// mutations changes every member of the rich definition in every way: removed, replaced, and with
// an unknown member added.
func mutations(t *testing.T) []mutant {
	t.Helper()
	var ms []mutant
	add := func(what string, root any) {
		b, err := json.Marshal(root)
		require.NoError(t, err)
		ms = append(ms, mutant{what, b})
	}
	fresh := func() any {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(rich))
		require.NoError(t, err)
		return v
	}
	replacements := []any{
		nil, true, json.Number("0"), json.Number("-1"), json.Number("1.5"), json.Number("2.0"), json.Number("31536000001"), "", "x", "X y", "prompt:Bad", "*",
		"2026-02-30T00:00:00Z", strings.Repeat("a", 300),
		[]any{},
		[]any{"a", "a"},
		[]any{nil},
		map[string]any{},
		map[string]any{"type": "static"},
	}
	for _, path := range paths(fresh(), nil) {
		for _, r := range replacements {
			root := fresh()
			b, err := json.Marshal(r)
			require.NoError(t, err)
			add("/"+strings.Join(path, "/")+" := "+string(b[:min(len(b), 30)]), replace(root, path, func(any) any { return r }))
		}
		add("/"+strings.Join(path, "/")+" removed", remove(fresh(), path))
		add("/"+strings.Join(path, "/")+" joined", replace(fresh(), path, func(v any) any {
			if object, ok := v.(map[string]any); ok {
				object["unheardOf"] = 1
			}
			return v
		}))
	}
	return ms
}

// paths lists the path of every value in v except the root.
func paths(v any, at []string) [][]string {
	var all [][]string
	each := func(token string, item any) {
		here := append(slices.Clone(at), token)
		all = append(append(all, here), paths(item, here)...)
	}
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			each(name, v[name])
		}
	case []any:
		for i, item := range v {
			each(strconv.Itoa(i), item)
		}
	}
	return all
}

// replace changes the value at path and returns the changed root.
func replace(v any, path []string, by func(any) any) any {
	if len(path) == 0 {
		return by(v)
	}
	switch v := v.(type) {
	case map[string]any:
		v[path[0]] = replace(v[path[0]], path[1:], by)
	case []any:
		i, _ := strconv.Atoi(path[0])
		v[i] = replace(v[i], path[1:], by)
	}
	return v
}

// remove removes the member or element at path.
func remove(v any, path []string) any {
	last := len(path) - 1
	return replace(v, path[:last], func(parent any) any {
		switch parent := parent.(type) {
		case map[string]any:
			delete(parent, path[last])
		case []any:
			i, _ := strconv.Atoi(path[last])
			return slices.Delete(parent, i, i+1)
		}
		return parent
	})
}

func TestSchemaJSON_IsClosedAsInTheContract(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"", "/nodes/0", "/edges/0", "/edges/0/condition", "/nodes/0/inputs/s", "/nodes/0/agent", "/triggers/0", "/variables/0", "/channels/log", "/groups/0", "/defaults"} {
		requireUnknown(t, place, true)
	}
	for _, place := range []string{"/metadata", "/settings", "/metadata/complianceConfig", "/nodes/0/config", "/nodes/0/settings", "/nodes/0/position"} {
		requireUnknown(t, place, false)
	}
}

// requireUnknown adds an unknown member at a path and checks whether it is rejected.
func requireUnknown(t *testing.T, place string, refused bool) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(rich))
	require.NoError(t, err)
	path := strings.Split(place, "/")[1:]
	root := replace(v, path, func(v any) any {
		v.(map[string]any)["unheardOf"] = 1
		return v
	})
	doc, err := json.Marshal(root)
	require.NoError(t, err)
	_, problems := workflow.Parse(doc)
	if !refused {
		require.Empty(t, problems, place)
		return
	}
	require.Len(t, problems, 1, place)
	require.Equal(t, place+"/unheardOf", problems[0].Path)
}
