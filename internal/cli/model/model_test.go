package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

const ourModels = `{"version":1,"asOf":"2026-01-31","models":[
	{"provider":"lab","model":"house-7b","aliases":["house"],"capabilities":["reasoning"],"unsure":["vision-input"],"contextTokens":8000,"sampling":true,
	 "prices":{"input":0.25,"until":"2026-06-30","then":{"input":0.5,"output":2,"long":{"over":4000,"input":1}}},"retires":"2027-01-01","note":"ours"},
	{"provider":"sample","model":"sample-1","capabilities":["structured-output"],"structuredOutput":"format"}],
	"rules":[{"match":"shed-*","provider":"lab","capabilities":["function-calling"],"lacks":["vision-input"]}]}`

func modelsFile(t *testing.T, doc string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "models.json")
	require.NoError(t, os.WriteFile(file, []byte(doc), 0o600))
	return file
}

func TestModelList_ShowsModelsAndRules(t *testing.T) {
	t.Parallel()
	out, err := command(t, "", "model", "list")
	require.NoError(t, err)
	for _, e := range catalogue.Builtin().Entries() {
		require.Contains(t, out, "\n"+e.Name()+" ")
	}
	require.Contains(t, out, "gpt-oss*")
	require.Contains(t, out, "as of "+catalogue.Builtin().AsOf()+", "+catalogue.Builtin().Digest())

	out, err = command(t, "", "model", "list", "--provider", "lab", "--models", modelsFile(t, ourModels))
	require.NoError(t, err)
	rows := strings.Split(out, "\n")
	require.Equal(t, []string{"lab/house-7b", "8000", "-", "-", "0.25", "-", "reasoning"}, strings.Fields(rows[1]))
	require.Equal(t, []string{
		"shed-*", "lab", "function-calling", "vision-input",
	}, strings.Fields(rows[4]), "rules of the file come first")
	require.NotContains(t, out, "sample/")
	require.Contains(t, out, "gpt-oss*", "rules cover unlisted providers")
}

func TestModelList_WritesTheSameAsJSONAndYAML(t *testing.T) {
	t.Parallel()
	file := modelsFile(t, ourModels)
	want, err := models.LoadCatalogue(file)
	require.NoError(t, err)
	asJSON, err := command(t, "", "model", "list", "-o", "json", "--models", file)
	require.NoError(t, err)
	var got listing
	require.NoError(t, json.Unmarshal([]byte(asJSON), &got))
	require.Equal(t, listing{AsOf: want.AsOf(), Digest: want.Digest(), Models: want.Entries(), Rules: want.Rules()}, got)

	asYAML, err := command(t, "", "model", "list", "-o", "yaml", "--models", file)
	require.NoError(t, err)
	require.NotContains(t, asYAML, "{", "block style")
	var fromYAML, fromJSON any
	require.NoError(t, yaml.Unmarshal([]byte(asYAML), &fromYAML))
	require.NoError(t, yaml.Unmarshal([]byte(asJSON), &fromJSON))
	require.Equal(t, fromJSON, fromYAML)
}

func TestModelList_NamesTheProvidersForAnUnknownOne(t *testing.T) {
	t.Parallel()
	whole := modelsFile(t, `{"version":1,"asOf":"2026-01-31","providers":{"lab":{"name":"The lab"}}}`)
	_, err := command(t, "", "model", "list", "--provider", "lab", "--models", whole)
	require.ErrorIs(t, err, errUnknownModel)
	require.ErrorContains(t, err, "provider lab: not in the catalogue; known: anthropic, gemini, mock, openai, sample")
	require.Equal(t, exit.NotFound, exit.Status(err))
}

func TestModelShow_PrintsTheWholeEntry(t *testing.T) {
	t.Parallel()
	out, err := command(t, "", "model", "show", "lab/house", "--models", modelsFile(t, ourModels))
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	require.Equal(t, []string{
		"model lab/house-7b", "aliases house", "retires 2027-01-01", "has reasoning",
		"lacks structured-output, discriminator-enum, long-context, function-calling, audio-input, audio-output, image-output",
		"unknown vision-input", "context 8000", "answer -", "schema -", "sampling yes",
		"prices input 0.25, output -, cache read -, cache write - (USD per million tokens)", "until 2026-06-30",
		"prices then input 0.5, output 2, cache read -, cache write - (USD per million tokens)",
		"input over 4000 input 1, output -, cache read -, cache write - (USD per million tokens)",
		"note ours",
	}, lines)

	out, err = command(t, "", "model", "show", "lab/maker/Shed-9", "-o", "json", "--models", modelsFile(t, ourModels))
	require.NoError(t, err)
	require.JSONEq(t, `{"provider":"lab","model":"maker/Shed-9","capabilities":["function-calling"],"rule":"shed-*",
		"unsure":["structured-output","discriminator-enum","long-context","reasoning","audio-input","audio-output","image-output"]}`, out)

	out, err = command(t, "", "model", "show", "openai/gpt-4o-2024-08-06", "-o", "yaml")
	require.NoError(t, err)
	require.Contains(t, out, "model: gpt-4o\n")
}

func TestModelShow_SuggestsNamesForAnUnknownModel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"openai/gpt-4-o":          "model openai/gpt-4-o: not in the catalogue; did you mean openai/gpt-4o",
		"google/gemini-3.8-flash": "did you mean gemini/gemini-3.8-flash",
		"lab/homegrown":           "model lab/homegrown: not in the catalogue; see `waybill model list`, or add it with --models",
	} {
		out, err := command(t, "", "model", "show", name)
		require.ErrorIs(t, err, errUnknownModel, name)
		require.ErrorContains(t, err, want)
		require.Equal(t, exit.NotFound, exit.Status(err))
		require.Empty(t, out)
	}
}

func TestModelDiff_ShowsWhatAFileChanges(t *testing.T) {
	t.Parallel()
	file := modelsFile(t, ourModels)
	out, err := command(t, "", "model", "diff", file)
	require.ErrorIs(t, err, errDifferences)
	require.Equal(t, exit.Failed, exit.Status(err))
	require.Contains(t, err.Error(), "7 difference(s)")
	require.Equal(t, `lab/house-7b: added
rule shed-* of lab: added
sample/sample-1: capabilities: ["structured-output","discriminator-enum"] -> ["structured-output"]
sample/sample-1: prices.cacheRead: 0 -> nothing
`, strings.Join(strings.SplitAfter(out, "\n")[:4], ""))

	out, err = command(t, ourModels, "model", "diff", "-", "--models", file)
	require.NoError(t, err, "applied twice, it changes nothing")
	require.Empty(t, out)
}

func TestModelDiff_ComparesTwoFiles(t *testing.T) {
	t.Parallel()
	old := modelsFile(t, ourModels)
	out, err := command(t, strings.Replace(ourModels, `"input":0.25`, `"input":0.125`, 1), "model", "diff", old, "-", "-o", "json")
	require.ErrorIs(t, err, errDifferences)
	require.JSONEq(t, `[{"kind":"changed","subject":"lab/house-7b","member":"prices.input","old":0.25,"new":0.125}]`, out)

	out, err = command(t, ourModels, "model", "diff", "-", old, "-o", "yaml")
	require.NoError(t, err)
	require.Equal(t, "[]\n", out)
}

func TestModel_RejectsInvalidArguments(t *testing.T) {
	t.Parallel()
	bad := modelsFile(t, `{"version":1,"asOf":"2026-01-31","models":[{"provider":"lab","model":"a","prices":{"input":-1,"output":"x"}}]}`)
	good := modelsFile(t, ourModels)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"form":         {[]string{"list", "-o", "xml"}, `--output "xml": want table, wide, json, jsonl, yaml, name`},
		"no model":     {[]string{"show", "openai"}, `"openai": want PROVIDER/MODEL`},
		"half a model": {[]string{"show", "openai/"}, `want PROVIDER/MODEL`},
		"no such file": {
			[]string{"list", "--models", "no-such.json"},
			"--models no-such.json: no such file or directory; give a JSON file of models",
		},
		"a folder": {[]string{"diff", t.TempDir()}, "is a directory; give a JSON file of models"},
		"no catalogue": {
			[]string{"show", "lab/a", "--models", bad},
			"--models " + bad + " is no model catalogue:\nline 1, at \"/models/0/prices/input\": ",
		},
		"all its faults": {[]string{"diff", bad}, "at \"/models/0/prices/output\": "},
		"three files":    {[]string{"diff", good, "--models", good, good}, "--models cannot be used with two files"},
	} {
		_, err := command(t, "", append([]string{"model"}, tc.args...)...)
		require.ErrorContains(t, err, tc.want, name)
		require.Equal(t, exit.Usage, exit.Status(err), name)
	}
}
