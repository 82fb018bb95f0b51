package lint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
)

func flowDoc(edge string) string {
	return `{"id":"wf","name":"wf","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},
		"nodes":[{"id":"a","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{},"disabled":true},
		         {"id":"b","typeId":"core.noop","name":"b","position":{"x":0,"y":0},"config":{},"inputs":{}}],
		"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"b"` + edge + `}]}`
}

func delayDoc(ms string) string {
	return `{"id":"wf","name":"wf","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},
		"nodes":[{"id":"a","typeId":"core.delay","name":"a","position":{"x":0,"y":0},"config":{"delayMs":` + ms + `},"inputs":{}}],"edges":[]}`
}

func TestWorkflowLint_FindsWhatAHostFinds(t *testing.T) {
	t.Parallel()
	out, err := command(t, flowDoc(`,"triggerRule":"all_complete"`), "workflow", "lint", "-")
	require.NoError(t, err)
	require.Empty(t, out)

	out, err = command(t, flowDoc(""), "workflow", "lint", "-")
	require.NoError(t, err, "a warning is not an error")
	require.Contains(t, out, "-: /nodes/1: warning: never-runs: no run gets to this node")

	out, err = command(t, flowDoc(`,"condition":{"expression":"output > 1"}`), "workflow", "lint", "-o", "json", "-")
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, `"path": "/edges/0/condition/expression"`)
	require.Contains(t, out, `"rule": "expression"`)
	require.Contains(t, out, "an expression here sees outputs, variables")

	out, err = command(t, `{"id":"wf"}`, "workflow", "lint", "-")
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "-: ")

	out, err = command(t, delayDoc("40000000000"), "workflow", "lint", "-")
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "-: /nodes/0/config/delayMs: limit: is 40000000000; want a number of milliseconds from 0 to 31622400000 (366 days)")

	out, err = command(t, flowDoc(`,"triggerRule":"all_complete"`), "workflow", "lint", "--max-node-executions", "0", "-")
	require.ErrorIs(t, err, exit.ErrUsage, out)

	_, err = command(t, "{}", "workflow", "lint", "no-such-file.json")
	require.ErrorIs(t, err, exit.ErrUsage)
}

// What a vendor gets in another form: a warning if the model answers in another shape, the rest with
// --rewrites.
func TestWorkflowLint_NamesWhatIsRewritten(t *testing.T) {
	t.Parallel()
	doc := `{"id":"wf","name":"wf","version":"1","triggers":[],"variables":[],"metadata":{},"settings":{},"edges":[],
		"nodes":[{"id":"a","typeId":"core.ai.structuredOutput","name":"a","position":{"x":0,"y":0},"inputs":{},"config":{"provider":"anthropic","prompt":"p",
			"outputSchema":{"type":"object","additionalProperties":false,"required":["a b"],"properties":{"a b":{"type":"number","minimum":1}}}}}]}`
	const renamed = `-: /nodes/0/config/outputSchema/properties/a b: warning: renamed-property: rewritten for anthropic at "/properties/a b": ` +
		"sent as a_b, because names of properties must match ^[a-zA-Z0-9_.-]{1,64}$\n"
	out, err := command(t, doc, "workflow", "lint", "-")
	require.NoError(t, err)
	require.Equal(t, renamed, out)
	out, err = command(t, doc, "workflow", "lint", "--rewrites", "-")
	require.NoError(t, err)
	require.Equal(t, renamed+`-: /nodes/0/config/outputSchema/properties/a b/minimum: warning: described: rewritten for anthropic at "/properties/a b/minimum": `+
		"minimum is put into the description, because it is not enforced\n", out)
}

func TestWorkflowLint_NamesAllFormats(t *testing.T) {
	t.Parallel()
	_, err := command(t, flowDoc(""), "workflow", "lint", "-o", "foo", "-")
	require.ErrorContains(t, err, `--output "foo": want table, wide, json, jsonl, yaml, name, github, sarif`)
}

// Kinds that a host would reject are findings, and do not hide what else is wrong.
func TestWorkflowLint_FindsKindsThatAHostRejects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, doc string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(doc), 0o600))
		return path
	}
	half := file("vendor.acme.half.schema.json", "{\"type\":\"object\",\n\"prop")
	misspelled := file("vendor.acme.typo.schema.json", `{"type":"object","propertes":{}}`)
	name := file("note.schema.json", `{"type":"object"}`)
	version := file("vendor.acme.version.schema.json", `{"type":"object","x-schemaVersion":"one"}`)
	file("vendor.acme.good.schema.json", `{"type":"object"}`)
	file("README.md", "no kind")
	flow := `{"id":"w","name":"w","version":"1","nodes":[{"id":"a","typeId":"core.ai.callPrompt",
		"config":{"prompt":"x","envelopeType":"vendor.acme.half"}},{"id":"b","typeId":"core.ai.callPrompt","config":{"prompt":"x","envelopeType":"vendor.acme.other"}}]}`
	out, err := command(t, flow, "workflow", "lint", "--kinds", dir, "-")
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, half+": ")
	require.Contains(t, out, misspelled+": /propertes: unknown-keyword: JSON Schema has no such keyword, and ignores it; did you mean properties?")
	require.Contains(t, out, name+": (root): not-a-kind: kind \"note\": the name must have the form vendor.<host>.<kind>")
	require.Contains(t, out, version+": ")
	require.NotContains(t, out, "good")
	require.NotContains(t, out, "/nodes/0/config/envelopeType", "its file is the mistake")
	require.Contains(t, out, "/nodes/1/config/envelopeType")

	require.Contains(t, out, version+": /x-schemaVersion: not-a-kind: kind vendor.acme.version: x-schemaVersion: want an integer")

	for _, flag := range []string{"--kinds", "--packs", "--prompts", "--models"} {
		_, err := command(t, flow, "workflow", "lint", flag, filepath.Join(dir, "none"), "-")
		require.ErrorIs(t, err, exit.ErrUsage, flag)
		require.ErrorContains(t, err, flag+" "+filepath.Join(dir, "none"), flag)
	}
}

// Schemas that a host does not read because of their names are warnings; other files are not.
func TestWorkflowLint_FindsKindsThatAHostDoesNotRead(t *testing.T) {
	t.Parallel()
	const kind = `{"type":"object","properties":{"a":{"type":"string"}}}`
	flow := `{"id":"w","name":"w","version":"1","nodes":[{"id":"a","typeId":"core.noop"}]}`
	for name, doc := range map[string]string{
		"vendor.acme.note.schemas.json": kind, "vendor.acme.note.json": kind, "vendor.acme.note.schema.JSON": kind, "acme/vendor.acme.note.schema.json": kind,
		"vendor.acme.note.schema.yaml": "type: object\nproperties: {}\n",
	} {
		out, err := command(t, flow, "workflow", "lint", "--kinds", clitest.Folder(t, map[string]string{name: doc}), "-")
		require.NoError(t, err, name)
		require.Contains(t, filepath.ToSlash(out), name+": (root): warning: not-a-kind: is not read: kinds are files vendor.HOST.KIND.schema.json")
	}
	out, err := command(t, flow, "workflow", "lint", "--kinds", clitest.Folder(t, map[string]string{
		"vendor.acme.note.schema.json": `{"$id":"vendor.acme.other","type":"object"}`, "vendor.acme.b.schema.json": `{"$id":"https://acme.example/b","type":"object"}`,
		"vendor.acme.note.example.json": `{"a":"x"}`, "README.md": "properties", ".hidden/vendor.acme.c.schema.json": kind,
	}), "-")
	require.NoError(t, err)
	require.Regexp(t, `^\S*vendor.acme.note.schema.json: /\$id: warning: not-a-kind: names another kind[^\n]*\n$`, out)
}

// A provider whose models a file lists has no others.
func TestWorkflowLint_KnowsTheModelsOfAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "models.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"version":1,"asOf":"2026-01-31","models":[{"provider":"house","model":"small-7b"}]}`), 0o600))
	flow := func(model string) string {
		return `{"id":"w","name":"w","version":"1","nodes":[{"id":"a","typeId":"core.ai.callPrompt","config":{"prompt":"x","provider":"house","model":"` + model + `"}}]}`
	}
	out, err := command(t, flow("smal-7b"), "workflow", "lint", "--models", file, "-")
	require.NoError(t, err)
	require.Equal(t, "-: /nodes/0/config/model: warning: model: the catalogue has no such model; did you mean house/small-7b? `waybill model list` lists them\n", out)
	out, err = command(t, flow("small-7b"), "workflow", "lint", "--models", file, "-")
	require.NoError(t, err)
	require.Empty(t, out)
}
