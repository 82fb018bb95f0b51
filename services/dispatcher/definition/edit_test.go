package definition_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
)

const twoNodes = `{"id":"two","name":"two","version":"1","triggers":[{"id":"t","type":"manual","nodeId":"a"}],"variables":[],"metadata":{},"settings":{},
"nodes":[{"id":"a","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{}},
{"id":"b","typeId":"core.ai.callPrompt","name":"b","position":{"x":0,"y":0},"config":{"prompt":"old <b>"},"inputs":{"x":{"type":"connection","nodeId":"a","outputKey":"output"},"y":{"type":"static","value":9007199254740993}}}],
"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"b"}]}`

type documents map[string]*definition.Entry

func (d documents) ByDigest(_ context.Context, digest string) (*definition.Entry, error) {
	if e := d[digest]; e != nil {
		return e, nil
	}
	return nil, fault.New(fault.WorkflowNotFound, "gone")
}

func parsed(t *testing.T, doc string) *workflow.Definition {
	t.Helper()
	def, problems := workflow.Parse([]byte(doc))
	require.Empty(t, problems)
	return def
}

func TestOfRun_AppliesTheEditsOfTheRecord(t *testing.T) {
	t.Parallel()
	base := &definition.Entry{Def: parsed(t, twoNodes), Digest: "sha256:base"}
	rec := &wire.RunRecord{WorkflowDigest: "sha256:edited", Fork: &wire.Fork{Edited: &wire.Edited{Definition: "sha256:base", Nodes: []wire.NodeEdit{{
		NodeID: "b", Config: json.RawMessage(`{"prompt":"new <b>"}`), Inputs: map[string]json.RawMessage{"x": json.RawMessage(`"set"`)},
	}}}}}
	got, err := definition.OfRun(t.Context(), documents{"sha256:base": base}, rec)
	require.NoError(t, err)
	require.Len(t, got.Def.Nodes, 2)
	require.Len(t, got.Def.Edges, 1)
	require.JSONEq(t, `{"prompt":"new <b>"}`, string(got.Def.Nodes[1].Config))
	require.Equal(t, workflow.PortStatic, got.Def.Nodes[1].Inputs["x"].Type)
	require.JSONEq(t, `"set"`, string(got.Def.Nodes[1].Inputs["x"].Value))
	require.Equal(t, "9007199254740993", string(got.Def.Nodes[1].Inputs["y"].Value), "other numbers are as written")
	require.JSONEq(t, `{"prompt":"old <b>"}`, string(base.Def.Nodes[1].Config), "the registered document does not change")

	rec.Fork.Edited.Only = "b"
	got, err = definition.OfRun(t.Context(), documents{"sha256:base": base}, rec)
	require.NoError(t, err)
	require.Len(t, got.Def.Nodes, 1)
	require.Empty(t, got.Def.Edges)
	require.Equal(t, "b", got.Def.Nodes[0].ID)
}

// A dispatcher that does not know edits finds no definition, and executes nothing.
func TestOfRun_TheDigestOfAnEditedRunIsNotRegistered(t *testing.T) {
	t.Parallel()
	base := &definition.Entry{Def: parsed(t, twoNodes), Digest: "sha256:base"}
	docs := documents{"sha256:base": base}
	_, err := definition.OfRun(t.Context(), docs, &wire.RunRecord{WorkflowDigest: "sha256:edited"})
	require.Equal(t, fault.WorkflowNotFound, fault.CodeOf(err))
	one, err := definition.Edit(base.Def.Raw, &wire.Edited{Only: "a"})
	require.NoError(t, err)
	two, err := definition.Edit(base.Def.Raw, &wire.Edited{Only: "a"})
	require.NoError(t, err)
	require.Equal(t, string(one), string(two))
}
