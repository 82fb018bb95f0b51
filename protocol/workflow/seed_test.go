package workflow_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
)

func TestSeed_OverridesDefaultsByInputs(t *testing.T) {
	t.Parallel()
	d := parse(t, small(t, func(doc map[string]any) {
		doc["variables"] = []any{
			map[string]any{"name": "kept", "type": "number", "defaultValue": 1},
			map[string]any{"name": "over", "type": "string", "defaultValue": "old", "required": true},
			map[string]any{"name": "given", "type": "object", "required": true},
			map[string]any{"name": "absent", "type": "array"},
		}
	}))
	inputs := map[string]json.RawMessage{"over": json.RawMessage(`"new"`), "given": json.RawMessage(` {"n":12345678901234567890}`), "other": json.RawMessage(`1`)}
	vars, problems := d.Seed(inputs)
	require.Empty(t, problems)
	require.Equal(t, map[string]json.RawMessage{"kept": json.RawMessage(`1`), "over": json.RawMessage(`"new"`), "given": inputs["given"]}, vars)
	require.Equal(t, []string{"other"}, d.Undeclared(inputs))
	require.Len(t, inputs, 3, "the inputs are unchanged")
}

func TestSeed_ReportsEveryInputAtItsPlace(t *testing.T) {
	t.Parallel()
	d := parse(t, small(t, func(doc map[string]any) {
		doc["variables"] = []any{
			map[string]any{"name": "z", "type": "string", "required": true},
			map[string]any{"name": "a/b", "type": "array", "required": true, "defaultValue": []any{}},
			map[string]any{"name": "ok", "type": "boolean"},
		}
	}))
	vars, problems := d.Seed(map[string]json.RawMessage{"a/b": json.RawMessage(`null`), "ok": json.RawMessage(`false`)})
	require.Nil(t, vars)
	require.Equal(t, []workflow.Problem{
		{Path: "/inputs/a~1b", Rule: workflow.RuleValueType, Message: "want an array, got null"},
		{Path: "/inputs/z", Rule: workflow.RuleRequired, Message: "the workflow requires this input: a string"},
	}, problems)
}

func TestSeed_NamesTheInputThatMayBeMeant(t *testing.T) {
	t.Parallel()
	d := parse(t, small(t, func(doc map[string]any) {
		doc["variables"] = []any{map[string]any{"name": "text", "type": "string", "required": true}}
	}))
	for given, want := range map[string]string{
		"txt":   `the workflow requires this input: a string; did you mean it with "txt"?`,
		"Text":  `the workflow requires this input: a string; did you mean it with "Text"?`,
		"order": `the workflow requires this input: a string`,
	} {
		_, problems := d.Seed(map[string]json.RawMessage{given: json.RawMessage(`"a"`)})
		require.Equal(t, []workflow.Problem{{Path: "/inputs/text", Rule: workflow.RuleRequired, Message: want}}, problems)
	}
}

func TestSeed_ChecksTheTypeOfEachValue(t *testing.T) {
	t.Parallel()
	values := map[string]string{"string": `"s"`, "number": `-1.5e3`, "boolean": `true`, "object": `{"a":1}`, "array": `[1]`}
	for declared := range values {
		d := parse(t, small(t, func(doc map[string]any) {
			doc["variables"] = []any{map[string]any{"name": "v", "type": declared}}
		}))
		for given, value := range values {
			_, problems := d.Seed(map[string]json.RawMessage{"v": json.RawMessage(value)})
			require.Equal(t, declared == given, len(problems) == 0, "%s for %s", given, declared)
		}
		_, problems := d.Seed(map[string]json.RawMessage{"v": nil})
		require.Len(t, problems, 1)
	}
}

func TestSeed_StartsEmptyWithoutVariables(t *testing.T) {
	t.Parallel()
	vars, problems := parse(t, small(t, func(map[string]any) {})).Seed(nil)
	require.Empty(t, problems)
	require.NotNil(t, vars)
	require.Empty(t, vars)
}

func ExampleDefinition_Seed() {
	d, _ := workflow.Parse([]byte(`{
		"id": "greet", "name": "Greet", "version": "1", "metadata": {}, "settings": {}, "edges": [], "triggers": [],
		"nodes": [{"id": "n", "typeId": "core.noop", "name": "N", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}],
		"variables": [{"name": "who", "type": "string", "required": true}]
	}`))
	_, problems := d.Seed(nil)
	for _, p := range problems {
		fmt.Printf("%s: %s\n", p.Path, p.Message)
	}
	// Output: /inputs/who: the workflow requires this input: a string
}
