package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/test/harness"
)

// documents parses the consecutive documents of a JSON block.
func documents(text string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var doc json.RawMessage
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, doc)
	}
}

func TestJSON_EachBlockParses(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, b := range p.of("json") {
			if b.fragment != "" {
				t.Logf("%s:%d is a fragment: %s", p.path, b.line, b.fragment)
				continue
			}
			all, err := documents(b.text)
			require.NoError(t, err, "%s:%d", p.path, b.line)
			require.NotEmpty(t, all, "%s:%d", p.path, b.line)
		}
	}
}

// has reports whether a document is an object with all of these members.
func has(doc json.RawMessage, members ...string) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(doc, &m) != nil {
		return false
	}
	for _, name := range members {
		if m[name] == nil {
			return false
		}
	}
	return true
}

// workflowOf returns a definition with one node, for a page that shows only a node.
func workflowOf(node json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"id":"w","name":"w","version":"1","nodes":[%s],"edges":[],"triggers":[{"id":"t","type":"manual","name":"t","config":{},"enabled":true}],
		"variables":[],"metadata":{"createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z"},"settings":{}}`, node)
}

// A definition on a page can be registered.
func TestJSON_WorkflowsAndNodesAreAcceptedByTheHost(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range pages(t) {
		for _, b := range p.of("json") {
			all, _ := documents(b.text) // another test reports invalid JSON
			for _, doc := range all {
				switch {
				case has(doc, "id", "nodes", "edges"):
				case has(doc, "typeId", "config", "inputs"):
					doc = workflowOf(doc)
				default:
					continue
				}
				_, problems := workflow.Parse(doc)
				require.Empty(t, problems, "%s:%d", p.path, b.line)
				seen++
			}
		}
	}
	require.Positive(t, seen)
}

// published maps members that identify a document to its published schema.
var published = []struct {
	file    string
	members []string
}{
	{"ai-envelope.schema.json", []string{"type", "schemaVersion", "envelopeId", "payload"}},
	{"workflow-definition.schema.json", []string{"id", "nodes", "edges"}},
	{"prompt-template.schema.json", []string{"templateId", "kind"}},
	{"node-pack-manifest.schema.json", []string{"engines", "runtime"}},
	{"run-event.schema.json", []string{"eventId", "runId", "sequence"}},
	{"error-envelope.schema.json", []string{"error", "message"}},
}

// worked are pages whose documents another test checks by the host's outcome, including rejected
// ones.
var worked = map[string]string{"docs/pipeline.md": "services/acceptor/accept#TestPipelineDoc_ShowsTheOutcomesOfItsExamples"}

func TestJSON_DocumentsSatisfyThePublishedSchemas(t *testing.T) {
	t.Parallel()
	schemas := harness.LoadSchemas(t)
	for _, p := range pages(t) {
		if worked[p.path] != "" {
			continue
		}
		for _, b := range p.of("json") {
			all, _ := documents(b.text) // another test reports invalid JSON
			for _, doc := range all {
				for _, s := range published {
					if b.fragment == "" && has(doc, s.members...) {
						require.NoError(t, schemas.Validate(s.file, doc), "%s:%d", p.path, b.line)
					}
				}
			}
		}
	}
}

// YAML is a configuration file, whose keys are flags, or values of the chart.
func TestYAML_IsSettingsOrValuesOfTheChart(t *testing.T) {
	t.Parallel()
	flags, err := os.ReadFile(filepath.Join(root, "docs", "reference", "configuration.md"))
	require.NoError(t, err)
	values := chartValues(t)
	for _, p := range pages(t) {
		for _, b := range p.of("yaml") {
			var doc map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(b.text), &doc), "%s:%d", p.path, b.line)
			if b.fragment != "" {
				continue
			}
			if p.path == "docs/kubernetes.md" || strings.HasPrefix(p.path, "deploy/") {
				require.NoError(t, values.Validate(plain(t, doc)), "%s:%d", p.path, b.line)
				continue
			}
			for key := range doc {
				require.Contains(t, string(flags), "| `--"+key+"` |", "%s:%d", p.path, b.line)
			}
		}
	}
}

// chartValues returns the schema of the chart's values, without required members.
func chartValues(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "helm", "waybill", "values.schema.json"))
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	delete(doc.(map[string]any), "required") // a page may omit defaults
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("values.schema.json", doc))
	s, err := c.Compile("values.schema.json")
	require.NoError(t, err)
	return s
}

// plain converts a YAML document to JSON types.
func plain(t *testing.T, doc any) any {
	t.Helper()
	text, err := json.Marshal(doc)
	require.NoError(t, err)
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return out
}
