package lint

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/clitest"
	"waybill.dev/waybill/internal/cli/exit"
)

// repository is the folder of the root module; tests change the working directory.
var repository, _ = filepath.Abs(filepath.Join("..", "..", ".."))

// publishedSARIF compiles the schema of OASIS, which the package has in its source and does not export.
func publishedSARIF(t *testing.T) *jsonschema.Schema {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-C", repository, "-f", "{{.Dir}}", reflect.TypeFor[sarif.Report]().PkgPath()).Output()
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "schema.go"), nil, 0)
	require.NoError(t, err)
	spec, ok := file.Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec)
	require.True(t, ok)
	text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("sarif.json", doc))
	s, err := c.Compile("sarif.json")
	require.NoError(t, err)
	return s
}

// readSARIF reads a log that has the form of the published schema.
func readSARIF(t *testing.T, text string) *sarif.Run {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, publishedSARIF(t).Validate(doc), text)
	var log sarif.Report
	require.NoError(t, json.Unmarshal([]byte(text), &log))
	require.Equal(t, "2.1.0", log.Version)
	require.Len(t, log.Runs, 1)
	return log.Runs[0]
}

// Code scanning shows a result if it names a file of the repository, by a relative URI, with a place, and a
// rule that the log describes.
func TestSARIF_NamesFilesOfTheRepository(t *testing.T) { //nolint:paralleltest // changes the working directory
	const doc = "{\"id\":\"w\",\"name\":\"w\",\"version\":\"1\",\n \"nodes\":[{\"id\":\"a\",\"typeId\":\"core.ai.callPrompt\",\"config\":{\"promt\":\"x, 100%\"}},\n" +
		" {\"id\":\"b\",\"typeId\":\"core.noop\",\"disabled\":true}]}"
	dir := clitest.Folder(t, map[string]string{".git/HEAD": "", "flows/a b/flow #1.json": doc, "sub/x": ""})
	elsewhere := clitest.Folder(t, map[string]string{"flow.json": doc})
	t.Chdir(filepath.Join(dir, "sub"))
	out, err := command(t, doc, "workflow", "lint", "-o", "sarif", filepath.Join("..", "flows", "a b"), filepath.Join(elsewhere, "flow.json"), "-")
	require.ErrorIs(t, err, errFindings)
	run := readSARIF(t, out)
	uris := map[string]int{}
	for _, r := range run.Results {
		require.Equal(t, *r.RuleID, *run.Tool.Driver.Rules[r.RuleIndex].ID)
		require.NotEmpty(t, *run.Tool.Driver.Rules[r.RuleIndex].ShortDescription.Text)
		place := r.Locations[0].PhysicalLocation
		require.Positive(t, *place.Region.StartLine)
		require.Positive(t, *place.Region.StartColumn)
		uris[*place.ArtifactLocation.URI]++
		if *place.ArtifactLocation.URI == "flows/a%20b/flow%20%231.json" {
			require.Equal(t, "%SRCROOT%", *place.ArtifactLocation.URIBaseID)
		} else {
			require.Nil(t, place.ArtifactLocation.URIBaseID)
		}
	}
	require.Len(t, uris, 3)
	require.Positive(t, uris["flows/a%20b/flow%20%231.json"])
	require.Positive(t, uris["file://"+filepath.ToSlash(elsewhere)+"/flow.json"])
	require.Positive(t, uris["stdin"])

	out, err = command(t, "", "workflow", "lint", "-o", "github", filepath.Join("..", "flows", "a b"))
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, out, "::error file=flows/a b/flow #1.json,line=2,col=")
}

// A log without findings is valid, too.
func TestSARIF_WithoutFindings(t *testing.T) {
	t.Parallel()
	out, err := command(t, `{"id":"w","name":"w","version":"1","nodes":[{"id":"a","typeId":"core.noop"}]}`, "workflow", "lint", "-o", "sarif", "-")
	require.NoError(t, err)
	require.Empty(t, readSARIF(t, out).Results)
}

// A folder without definitions is more likely a mistake than a clean one.
func TestWorkflowLint_RejectsAFolderWithoutDefinitions(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"README.md": "x", ".hidden.json": "{}", "draft.json~": "{}", "[sub]/flow.json": `{"id":"w"}`})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder.json"), 0o700))
	_, err := command(t, "", "workflow", "lint", dir)
	require.Equal(t, exit.Usage, exit.Status(err))
	require.ErrorContains(t, err, dir+" has no *.json file; want files, or a folder of workflow definitions")
	out, err := command(t, "", "workflow", "lint", filepath.Join(dir, "[sub]"))
	require.ErrorIs(t, err, errFindings, "brackets are no pattern")
	require.Contains(t, out, "flow.json")
}

// Problems of the document and of configs are found together.
func TestWorkflowLint_FindsProblemsOfBothLevels(t *testing.T) {
	t.Parallel()
	out, err := command(t, `{"id":"w","name":"w","version":"1","unheardOf":1,
		"nodes":[{"id":"a","typeId":"core.ai.callPrompt","config":{"prompt":"x","promt":"y","temprature":1}},{"id":"b","typeId":"core.nop"}],
		"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"zz"}]}`, "workflow", "lint", "-")
	require.ErrorIs(t, err, errFindings)
	for _, want := range []string{
		"/edges/0/targetNodeId: reference: ", "/unheardOf: additionalProperties: ",
		"/nodes/0/config/promt: additionalProperties: unknown member; prompt is set, too: remove one of the two;",
		"/nodes/0/config/temprature: additionalProperties: unknown member; did you mean temperature?", "/nodes/1/typeId: node-type: ",
	} {
		require.Contains(t, out, want)
	}
}
