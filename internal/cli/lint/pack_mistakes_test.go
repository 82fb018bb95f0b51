package lint

import (
	"encoding/json"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

const (
	deskManifest = `{"name":"vendor.acme.desk","version":"1.0.0","engines":{"openwop":">=1.0"},
		"nodes":[{"typeId":"vendor.acme.sort","version":"1.0.0","category":"chat","role":"side-effect"}]}`
	deskOwn   = `{"nodes":{"vendor.acme.sort":{"base":"core.ai.callPrompt","config":{"prompt":"Sort {{mail}}"}}}}`
	deskFlows = `{"id":"u","name":"U","version":"1","nodes":[{"id":"a","typeId":"vendor.acme.sort"}],"variables":[{"name":"mail","type":"string","required":true}]}`
)

// packMistake is an edit of the sound pack, and its finding: the file within the pack, the path, a part of the message.
type packMistake struct {
	file, old, by  string
	in, path, says string
	warning        bool
	more           map[string]string
}

func packMistakes() map[string]packMistake {
	node := func(with string) (string, string, string) {
		return "pack.json", `"role":"side-effect"`, `"role":"side-effect",` + with
	}
	at := func(file, old, by, in, path, says string, warning bool) packMistake {
		return packMistake{file: file, old: old, by: by, in: in, path: path, says: says, warning: warning}
	}
	inNode := func(with, in, path, says string, warning bool, more map[string]string) packMistake {
		file, old, by := node(with)
		return packMistake{file: file, old: old, by: by, in: in, path: path, says: says, warning: warning, more: more}
	}
	inConfig := func(with, path, says string) packMistake {
		return at("waybill.json", `"prompt":"Sort {{mail}}"`, `"prompt":"Sort {{mail}}",`+with, "waybill.json", "/nodes/vendor.acme.sort/config"+path, says, false)
	}
	return map[string]packMistake{
		"an unknown member of the config": inConfig(`"sistem":"x"`, "/sistem", "did you mean system?"),
		"a member below it":               inConfig(`"timeouts":{"callMS":5000}`, "/timeouts/callMS", "did you mean callMs?"),
		"a value out of range":            inConfig(`"temperature":7`, "/temperature", "at most 2"),
		"a value of another type":         inConfig(`"temperature":"hot"`, "/temperature", "number"),
		"a schema in the config": at("waybill.json", `"base":"core.ai.callPrompt","config":{`, `"base":"core.ai.structuredOutput","config":{"outputSchema":{"type":"object","propertys":{}},`,
			"waybill.json", "/nodes/vendor.acme.sort/config/outputSchema/propertys", "did you mean properties?", false),
		"an expression": at("waybill.json", `"base":"core.ai.callPrompt","config":{"prompt":"Sort {{mail}}"}`, `"base":"core.conditional","config":{"expression":"inputs.x ="}`,
			"waybill.json", "/nodes/vendor.acme.sort/config/expression", "Syntax error", false),
		"an unknown member in a file": {
			file: "waybill.json", old: `"config":{`, by: `"configRefs":{"outptSchema":"s.json"},"config":{`, more: map[string]string{"s.json": `{"type":"object"}`},
			in: "waybill.json", path: "/nodes/vendor.acme.sort/configRefs/outptSchema", says: "unknown member",
		},
		"a mistake in a file of a member": {
			file: "waybill.json", old: `"base":"core.ai.callPrompt","config":{`, by: `"base":"core.ai.structuredOutput","configRefs":{"outputSchema":"s.json"},"config":{`,
			more: map[string]string{"s.json": `{"type":"object","requird":["a"]}`}, in: "s.json", path: "/requird", says: "did you mean required?",
		},
		"a misspelled base":          at("waybill.json", "core.ai.callPrompt", "core.ai.callPromt", "waybill.json", "/nodes/vendor.acme.sort/base", "did you mean core.ai.callPrompt?", false),
		"a node of a pack as base":   at("waybill.json", "core.ai.callPrompt", "vendor.acme.other", "waybill.json", "/nodes/vendor.acme.sort/base", "want a node type of this host", false),
		"a misspelled sensitive":     inNode(`"outputs":{"output":{"sensitve":true}}`, "pack.json", "/nodes/0/outputs/output/sensitve", "did you mean sensitive?", false, nil),
		"a port that does not exist": inNode(`"outputs":{"token":{"sensitive":true}}`, "pack.json", "/nodes/0/outputs/token", "no such output", true, nil),
		"a similar port":             inNode(`"outputs":{"outputs":{"sensitive":true}}`, "pack.json", "/nodes/0/outputs/outputs", "did you mean output?", true, nil),
		"a keyword of the config's schema": inNode(`"configSchemaRef":"c.json"`, "c.json", "/propertys", "did you mean properties?", false,
			map[string]string{"c.json": `{"type":"object","propertys":{}}`}),
		"a keyword of the ports' schema": inNode(`"inputSchemaRef":"i.json"`, "i.json", "/requird", "did you mean required?", false,
			map[string]string{"i.json": `{"type":"object","requird":["mail"]}`}),
		"a capability of models":    inNode(`"requiredModelCapabilities":["structured-outputs"]`, "pack.json", "/nodes/0/requiredModelCapabilities/0", "did you mean structured-output?", true, nil),
		"a provider of a fallback":  inNode(`"requiredModelCapabilities":["reasoning"],"fallbackModel":{"provider":"opnai","model":"m"}`, "pack.json", "/nodes/0/fallbackModel/provider", "did you mean openai?", true, nil),
		"a role":                    at("pack.json", `"side-effect"`, `"side-efect"`, "pack.json", "/nodes/0/role", "did you mean side-effect?", true),
		"a version of a node":       at("pack.json", `"vendor.acme.sort","version":"1.0.0"`, `"vendor.acme.sort","version":"one"`, "pack.json", "/nodes/0/version", "three numbers", true),
		"a type of the host":        {file: "pack.json", old: "vendor.acme.sort", by: "core.noop", more: map[string]string{"waybill.json": `{"nodes":{"core.noop":{"base":"core.noop"}}}`}, in: "pack.json", path: "/nodes/0/typeId", says: "declared by this host"},
		"another engine":            at("pack.json", `{"openwop":">=1.0"}`, `{"openwop":">=1.0","waybil":">=1"}`, "pack.json", "/engines/waybil", "no effect", true),
		"no range of versions":      at("pack.json", `">=1.0"`, `"latest"`, "pack.json", "/engines/openwop", "range of versions", false),
		"a later protocol":          at("pack.json", `">=1.0"`, `">=3"`, "pack.json", "/engines/openwop", "outside this range", false),
		"a capability of the host":  at("pack.json", `"engines"`, `"peerDependencies":{"aiProvider":"supported"},"engines"`, "pack.json", "/peerDependencies/aiProvider", "did you mean aiProviders?", false),
		"an option without a peer":  at("pack.json", `"engines"`, `"peerDependencies":{"aiProviders":"supported"},"peerDependenciesMeta":{"aiProvider":{"optional":true}},"engines"`, "pack.json", "/peerDependenciesMeta/aiProvider", "did you mean aiProviders?", true),
		"a tag of another language": {file: "waybill.json", old: `{"nodes"`, by: `{"prompts":["a.json"],"nodes"`, more: map[string]string{"a.json": `{"templateId":"a","version":"1.0.0","kind":"user","text":"{{#if mail}}x{{/if}}"}`}, in: "a.json", path: "/text", says: "stays as it is", warning: true},
	}
}

// write writes the pack with the mistake, and returns the folder of packs.
func (m packMistake) write(t *testing.T) string {
	t.Helper()
	files := map[string]string{"pack.json": deskManifest, "waybill.json": deskOwn}
	require.Contains(t, files[m.file], m.old)
	files[m.file] = strings.ReplaceAll(files[m.file], m.old, m.by)
	maps.Copy(files, m.more)
	out := map[string]string{}
	for name, text := range files {
		out["desk/"+name] = text
	}
	return clitest.Folder(t, out)
}

func findings(t *testing.T, out string) []finding {
	t.Helper()
	var found []finding
	require.NoError(t, json.Unmarshal([]byte(out), &found), out)
	for _, f := range found {
		require.Positive(t, f.Line, "%+v", f)
	}
	return found
}

// Both commands find each mistake, and a host rejects what they call an error.
func TestPackMistakes_AreFoundByTheCommandsAndTheHost(t *testing.T) {
	t.Parallel()
	for name, m := range packMistakes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := m.write(t)
			use := filepath.Join(clitest.Folder(t, map[string]string{"w.json": deskFlows}), "w.json")
			desk := filepath.Join(dir, "desk")
			for _, args := range [][]string{{"schema", "lint", "-o", "json", desk}, {"workflow", "lint", "-o", "json", "--packs", dir, use}} {
				out, err := command(t, "", args...)
				require.Equal(t, !m.warning, err != nil, "%v: %v %s", args, err, out)
				found := findings(t, out)
				require.True(t, slices.ContainsFunc(found, func(f finding) bool {
					return f.File == filepath.Join(desk, m.in) && f.Path == m.path && strings.Contains(f.Message, m.says) && f.Warning == m.warning
				}), "%v: %+v", args, found)
			}
			_, err := packs.Load(dir, packs.HostOffers(packs.Models{Catalogue: catalogue.Builtin(), TrustsUnknown: true, Providers: []string{"openai"}}), slog.New(slog.DiscardHandler))
			require.Equal(t, !m.warning, err != nil, "%v", err)
		})
	}
}

// The sound pack, members of its own schema, members of authors, and what the protocol leaves open are no mistakes.
func TestPackMistakes_AreNotFoundInSoundPacks(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]packMistake{
		"as it is":         {file: "pack.json"},
		"with own members": {file: "pack.json", old: `"role":"side-effect"`, by: `"role":"side-effect","configSchemaRef":"c.json","outputs":{"output":{"sensitive":true,"label":"Answer"}}`, more: map[string]string{"c.json": `{"type":"object","properties":{"tone":{"type":"string"}}}`, "waybill.json": strings.Replace(deskOwn, `"prompt"`, `"x-note":"mine","tone":"kind","prompt"`, 1)}},
		"with an open schema": {file: "pack.json", old: `"role":"side-effect"`, by: `"role":"agent","configSchemaRef":"c.json"`, more: map[string]string{
			"c.json":       `{"type":"object","patternProperties":{"^t":true}}`,
			"waybill.json": strings.Replace(deskOwn, `"prompt"`, `"tone":"kind","prompt"`, 1),
		}},
		"without the members that authors set": {file: "pack.json", more: map[string]string{"waybill.json": `{"nodes":{"vendor.acme.sort":{"base":"core.ai.structuredOutput","config":{"system":"x"}}}}`}},
		"with another engine":                  {file: "pack.json", old: `{"openwop":">=1.0"}`, by: `{"openwop":">=1.0","node":">=20"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := command(t, "", "schema", "lint", filepath.Join(m.write(t), "desk"))
			require.NoError(t, err, out)
			require.Empty(t, out)
		})
	}
}

// A kind of a pack that a host rejects is a finding of `workflow lint`, too, and so is a kind that none has.
func TestWorkflowLint_ChecksTheKindsOfPacks(t *testing.T) {
	t.Parallel()
	m := packMistake{
		file: "waybill.json", old: `{"nodes"`, by: `{"envelopeKinds":[{"kind":"vendor.acme.note","version":1,"schemaRef":"k.json"}],"nodes"`,
		more: map[string]string{"k.json": `{"type":"object","propertes":{}}`},
	}
	dir := m.write(t)
	use := filepath.Join(clitest.Folder(t, map[string]string{"w.json": deskFlows}), "w.json")
	out, err := command(t, "", "workflow", "lint", "--packs", dir, use)
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "k.json: /propertes: unknown-keyword: ")

	doc := strings.Replace(m.by, `"nodes"`, "", 1) + strings.Replace(deskOwn[1:], `"config":{`, `"config":{"envelopeType":"vendor.acme.nope",`, 1)
	m.more = map[string]string{
		"k.json": `{"type":"object"}`, "waybill.json": doc, "c.json": `{"accepts":["vendor.acme.nite"]}`,
		"pack.json": strings.Replace(deskManifest, `"role"`, `"envelopeContractRef":"c.json","role"`, 1),
	}
	dir = m.write(t)
	out, err = command(t, "", "workflow", "lint", "--packs", dir, use)
	require.NoError(t, err)
	require.Contains(t, out, `/accepts/0: warning: kind: no pack has the kind "vendor.acme.nite"; did you mean vendor.acme.note?`)
	require.Contains(t, out, "/nodes/vendor.acme.sort/config/envelopeType: warning: kind: ")
}

// Mistakes in packs and templates have the formats of all findings.
func TestWorkflowLint_AnnotatesPacksAndTemplates(t *testing.T) {
	t.Parallel()
	use := filepath.Join(clitest.Folder(t, map[string]string{"w.json": deskFlows}), "w.json")
	prompts := clitest.Folder(t, map[string]string{
		"a.json": clerk, "b.json": clerk, "c.json": "{\n\"templateId\":\"c\",\"version\":\"1.0\",\"kind\":\"user\",\"text\":\"x\"}",
		"d.prompt.yaml": " templateId: d", "README.md": "Templates.",
	})
	out, err := command(t, "", "workflow", "lint", "-o", "github", "--prompts", prompts, use)
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "c.json,line=2,col=18,title=not-a-template::/version: ")
	require.Contains(t, out, "version 1.0.0 is there twice")
	require.Contains(t, out, "d.prompt.yaml,line=1,col=3,title=template::")
	require.NotContains(t, out, "README")
	out, err = command(t, "", "workflow", "lint", "-o", "sarif", "--packs", packMistakes()["a misspelled base"].write(t), use)
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, `"ruleId": "not-a-pack"`)

	for folder, says := range map[string]string{
		clitest.Folder(t, map[string]string{"en/greet.json": clerk}): "en/greet.json: (root): warning: template: is not read",
		clitest.Folder(t, map[string]string{"README.md": "none"}):    "the folder has no prompt template",
	} {
		out, err = command(t, "", "workflow", "lint", "--prompts", folder, use)
		require.NoError(t, err, out)
		require.Contains(t, filepath.ToSlash(out), says)
	}
}
