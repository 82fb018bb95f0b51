package create_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/definition"
)

var asking = doc("asking", strings.Replace(nodeJSON("gate", "core.approvalGate"), `"config":{}`, `"config":{"title":"t","actions":["accept"]}`, 1)+","+
	strings.Replace(nodeJSON("ask", "core.ai.callPrompt"), `"config":{}`, `"config":{"prompt":"old","temperature":1}`, 1)+","+
	strings.Replace(nodeJSON("set", "core.setVariable"), `"config":{}`, `"config":{"name":"n"}`, 1), `,"edges":[],"variables":[{"name":"mail","type":"string"}]`)

func editRig(t *testing.T) (rig, *workflow.Definition) {
	t.Helper()
	def, problems := workflow.Parse([]byte(asking))
	require.Empty(t, problems)
	r := newRig(t, asking)
	recorded(t, r, subject.End, wire.RunRecord{
		WorkflowDigest: def.Digest(), Inputs: map[string]json.RawMessage{"mail": json.RawMessage(`"m"`)}, CallbackURL: "https://example.org/x",
	}, 9)
	return r, def
}

func editOf(nodeID, typeID string, mod func(*create.Edit)) create.Fork {
	e := &create.Edit{
		NodeID: nodeID,
		Node: func(context.Context) (*create.NodeStart, error) {
			return &create.NodeStart{
				TypeID: typeID, First: 4, Config: json.RawMessage(`{"prompt":"old","temperature":1}`),
				Inputs: map[string]json.RawMessage{"mail": json.RawMessage(`"m"`)}, Variables: map[string]json.RawMessage{"mail": json.RawMessage(`"m"`), "n": json.RawMessage(`1`)},
				UntrustedInputs: []string{"mail"}, UntrustedVariables: []string{"n"}, Untrusted: true,
			}, nil
		},
		Lint: func(_ context.Context, _, doc []byte) ([]workflow.Problem, error) {
			_, problems := workflow.Parse(doc)
			return problems, nil
		},
	}
	mod(e)
	f := forkRequest(wire.ForkBranch, 0)
	f.Edit = e
	return f
}

func forkedRecord(t *testing.T, r rig, runID string) *wire.RunRecord {
	t.Helper()
	first, err := r.log.First(t.Context(), subject.Run{Tenant: "acme", RunID: runID})
	require.NoError(t, err)
	rec, err := first.Record()
	require.NoError(t, err)
	return rec
}

func TestEdit_ABranchBeginsBeforeTheNode(t *testing.T) {
	t.Parallel()
	r, def := editRig(t)
	got, err := r.Fork(t.Context(), editOf("ask", "core.ai.callPrompt", func(e *create.Edit) { e.Config = json.RawMessage(`{"prompt":"new","temperature":null}`) }))
	require.NoError(t, err)
	require.Equal(t, 4, got.Fork.FromSeq)
	rec := forkedRecord(t, r, "run_2")
	require.Equal(t, 4, rec.Fork.FromSeq)
	require.Equal(t, def.Digest(), rec.Fork.Edited.Definition)
	require.NotEqual(t, def.Digest(), rec.WorkflowDigest)
	require.JSONEq(t, `{"prompt":"new"}`, string(rec.Edit("ask").Config), "null removes a member")
	require.True(t, rec.Edit("ask").Untrusted)
	require.Nil(t, rec.Edit("ask").Outputs)
	require.Equal(t, "https://example.org/x", rec.CallbackURL)
	require.False(t, rec.Silent())
}

func TestEdit_ARunOfOneNodeHasItsRecordedInputs(t *testing.T) {
	t.Parallel()
	r, _ := editRig(t)
	_, err := r.Fork(t.Context(), editOf("ask", "core.ai.callPrompt", func(e *create.Edit) {
		e.Only, e.Inputs = true, json.RawMessage(`{"tone":"hunter2-hunter2"}`)
	}))
	require.NoError(t, err)
	rec := forkedRecord(t, r, "run_2")
	require.Zero(t, rec.Fork.FromSeq)
	require.Equal(t, "ask", rec.Only())
	require.True(t, rec.Silent())
	require.Empty(t, rec.CallbackURL)
	require.JSONEq(t, `1`, string(rec.Inputs["n"]), "variables of the source when the node started")
	require.JSONEq(t, `"m"`, string(rec.Edit("ask").Inputs["mail"]))
	require.Equal(t, []string{"mail"}, rec.Edit("ask").UntrustedInputs)
	require.Equal(t, []string{"n"}, rec.Fork.Edited.UntrustedVariables)
	require.JSONEq(t, `"[REDACTED:s]"`, string(rec.Edit("ask").Inputs["tone"]), "secrets are removed from edits, too")
}

// The digest of an edited run is that of the document that it executes, so it depends on no secret.
func TestEdit_TheDigestIsThatOfTheRecordedEdits(t *testing.T) {
	t.Parallel()
	r, def := editRig(t)
	digest := func(runID, prompt string) string {
		f := editOf("ask", "core.ai.callPrompt", func(e *create.Edit) { e.Config = json.RawMessage(`{"prompt":"` + prompt + `"}`) })
		f.RunID = runID
		_, err := r.Fork(t.Context(), f)
		require.NoError(t, err)
		rec := forkedRecord(t, r, runID)
		raw, err := definition.Edit(def.Raw, rec.Fork.Edited)
		require.NoError(t, err)
		require.Equal(t, (&workflow.Definition{Raw: raw}).Digest(), rec.WorkflowDigest, prompt)
		return rec.WorkflowDigest
	}
	digest("run_2", "a <b> & no secret")
	require.Equal(t, digest("run_3", "say [REDACTED:s]"), digest("run_4", "say hunter2-hunter2"))
}

func TestEdit_ForksOfAForkKeepItsEdits(t *testing.T) {
	t.Parallel()
	r, def := editRig(t)
	_, err := r.Fork(t.Context(), editOf("ask", "core.ai.callPrompt", func(e *create.Edit) { e.Outputs = json.RawMessage(`{}`) }))
	require.NoError(t, err)
	require.NotNil(t, forkedRecord(t, r, "run_2").Edit("ask").Outputs, "no port is another edit than none")
	for runID, mode := range map[string]wire.ForkMode{"run_3": wire.ForkReplay, "run_4": wire.ForkBranch} {
		_, err := r.Fork(t.Context(), create.Fork{Tenant: "acme", SourceRunID: "run_2", RunID: runID, Mode: mode})
		require.NoError(t, err)
		rec := forkedRecord(t, r, runID)
		require.Equal(t, forkedRecord(t, r, "run_2").Fork.Edited, rec.Fork.Edited)
		require.Equal(t, forkedRecord(t, r, "run_2").WorkflowDigest, rec.WorkflowDigest)
	}
	next := editOf("ask", "core.ai.callPrompt", func(e *create.Edit) { e.Config = json.RawMessage(`{"prompt":"third"}`) })
	next.SourceRunID, next.RunID = "run_2", "run_5"
	node := next.Edit.Node
	next.Edit.Node = func(ctx context.Context) (*create.NodeStart, error) {
		start, err := node(ctx)
		start.First = 0 // this fork has no events yet
		return start, err
	}
	_, err = r.Fork(t.Context(), next)
	require.NoError(t, err)
	rec := forkedRecord(t, r, "run_5")
	require.Len(t, rec.Fork.Edited.Nodes, 1)
	require.Nil(t, rec.Edit("ask").Outputs, "the node is executed again")
	require.Equal(t, def.Digest(), rec.Fork.Edited.Definition)
}

func TestEdit_RefusesWhatCannotBeEdited(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fork create.Fork
		want string
	}{
		"a person's answer":          {editOf("gate", "core.approvalGate", func(e *create.Edit) { e.Outputs = json.RawMessage(`{"approved":true}`) }), "asks a person"},
		"a variable":                 {editOf("set", "core.setVariable", func(e *create.Edit) { e.Outputs = json.RawMessage(`{"output":1}`) }), "sets a variable"},
		"another node":               {editOf("set", "core.setVariable", func(e *create.Edit) { e.Config = json.RawMessage(`{"name":"x"}`) }), "calls no model"},
		"nothing":                    {editOf("ask", "core.ai.callPrompt", func(*create.Edit) {}), "want config"},
		"both":                       {editOf("ask", "core.ai.callPrompt", func(e *create.Edit) { e.Outputs, e.Only = json.RawMessage(`{}`), true }), "not both"},
		"a config that is no object": {editOf("ask", "core.ai.callPrompt", func(e *create.Edit) { e.Config = json.RawMessage(`[]`) }), "want a JSON object"},
	} {
		r, _ := editRig(t)
		_, err := r.Fork(t.Context(), tc.fork)
		require.ErrorContains(t, err, tc.want, name)
		require.Len(t, r.log.Frames(), 2, "%s: no run is created", name)
	}
}

func TestEdit_ProblemsAreNamedAsInTheRequest(t *testing.T) {
	t.Parallel()
	r, _ := editRig(t)
	f := editOf("ask", "core.ai.callPrompt", func(e *create.Edit) {
		e.Config = json.RawMessage(`{"prompt":"new"}`)
		e.Lint = func(context.Context, []byte, []byte) ([]workflow.Problem, error) {
			return []workflow.Problem{{Path: "/nodes/1/config/prompt", Message: "names an unknown variable"}}, nil
		}
	})
	_, err := r.Fork(t.Context(), f)
	e, ok := fault.As(err)
	require.True(t, ok)
	require.Contains(t, e.Message, "/config/prompt: names an unknown variable")
	require.NotContains(t, e.Message, "/nodes/1")
}
