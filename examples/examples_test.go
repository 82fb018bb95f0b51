package examples_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/examples"
	"waybill.dev/waybill/internal/publishedtest"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/workflow"
)

// matching returns the files of all examples with a suffix.
func matching(t *testing.T, suffix string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	require.NoError(t, fs.WalkDir(examples.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, suffix) {
			return err
		}
		out[name], err = fs.ReadFile(examples.FS, name)
		return err
	}))
	require.NotEmpty(t, out, "no example has a %s", suffix)
	return out
}

func TestWorkflow_IsAValidDefinition(t *testing.T) {
	t.Parallel()
	for name, doc := range matching(t, "workflow.json") {
		def, problems := workflow.Parse(doc)
		require.Empty(t, problems, name)
		require.Equal(t, path.Base(path.Dir(name)), def.ID, "%s: the id must be the folder's name", name)
	}
}

func TestWorkflow_SatisfiesThePublishedSchema(t *testing.T) {
	t.Parallel()
	published := publishedtest.Load(t).Need(t, "workflow-definition.schema.json")
	for name, b := range matching(t, "workflow.json") {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		require.NoError(t, err)
		require.NoError(t, published.Validate(doc), name)
	}
}

// OpenWOP envelope contract §20: a kind in the Tier-1 subset can be requested in the strict mode of
// every vendor.
func TestKind_IsInTheStrictSubset(t *testing.T) {
	t.Parallel()
	for name, doc := range matching(t, ".schema.json") {
		require.Empty(t, schema.Lint(doc, schema.LevelStrict), name)
	}
}

// OpenWOP envelope contract §5: null counts as absent.
func TestKind_AcceptsAbsentReasoning(t *testing.T) {
	t.Parallel()
	for name, doc := range matching(t, ".schema.json") {
		var kind struct {
			Properties map[string]struct{ Type any }
		}
		require.NoError(t, json.Unmarshal(doc, &kind), name)
		require.ElementsMatch(t, []any{"string", "null"}, kind.Properties["reasoning"].Type, name)
	}
}

func TestTriage_AcceptsEachActionAndNoOther(t *testing.T) {
	t.Parallel()
	doc := matching(t, "vendor.waybill.ticket.triage.schema.json")
	kind, err := schema.Compile("triage", doc["triage/kinds/vendor.waybill.ticket.triage.schema.json"])
	require.NoError(t, err)
	ticket := func(action string) []byte {
		return []byte(`{"reasoning":null,"category":"billing","priority":"high","language":"en","summary":"s","action":` + action + `}`)
	}
	for _, tc := range []struct {
		name, action string
		valid        bool
	}{
		{"refund", `{"kind":"refund","orderId":"WL-48213","reason":"charged twice"}`, true},
		{"refund without an order number", `{"kind":"refund","orderId":null,"reason":"charged twice"}`, true},
		{"escalate", `{"kind":"escalate","team":"fraud","reason":"card was stolen"}`, true},
		{"reply", `{"kind":"reply","draft":"Dear customer"}`, true},
		{"member of another action", `{"kind":"reply","draft":"Dear customer","team":"legal"}`, false},
		{"unknown team", `{"kind":"escalate","team":"sales","reason":"r"}`, false},
		{"unknown kind", `{"kind":"ignore"}`, false},
		{"no kind", `{"draft":"Dear customer"}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if violations := kind.Validate(ticket(tc.action)); tc.valid {
				require.Empty(t, violations)
			} else {
				require.NotEmpty(t, violations)
			}
		})
	}
}

// Every {{name}} of a prompt is a declared variable or a port of its node. Every kind that a node
// requests is in its contract and in the example.
func TestWorkflow_RefersToDeclaredNamesOnly(t *testing.T) {
	t.Parallel()
	for name, doc := range matching(t, "workflow.json") {
		def, problems := workflow.Parse(doc)
		require.Empty(t, problems)
		var loose struct {
			Nodes []struct {
				Config           struct{ EnvelopeType, Prompt string }
				Inputs           map[string]any
				EnvelopeContract struct{ Accepts []string }
			}
		}
		require.NoError(t, json.Unmarshal(doc, &loose))
		declared := map[string]bool{}
		for _, v := range def.Variables {
			declared[v.Name] = true
		}
		for _, n := range loose.Nodes {
			for _, part := range strings.Split(n.Config.Prompt, "{{")[1:] {
				variable, _, closed := strings.Cut(part, "}}")
				require.True(t, closed, "%s: unclosed {{", name)
				_, port := n.Inputs[variable]
				require.True(t, port || declared[variable], "%s: %q is not declared", name, variable)
			}
			if kind := n.Config.EnvelopeType; kind != "" {
				require.Contains(t, n.EnvelopeContract.Accepts, kind, name)
				_, err := fs.Stat(examples.FS, path.Join(path.Dir(name), "kinds", kind+".schema.json"))
				require.NoError(t, err)
			}
		}
	}
}
