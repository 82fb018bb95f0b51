package node

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/workflow"
)

// membersOf lists the JSON names of a struct's fields.
func membersOf(v any) []string {
	var out []string
	for f := range reflect.TypeOf(v).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// usedMembers lists the members of a schema, without those that the host accepts and ignores.
func usedMembers(t *testing.T, doc []byte) []string {
	t.Helper()
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(doc, &object))
	var out []string
	for name, raw := range object.Properties {
		var p struct {
			Ignored bool `json:"x-waybill-ignored"`
		}
		if json.Unmarshal(raw, &p) != nil || !p.Ignored {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// The schema of a config and the type that it is read into have the same members.
func TestConfigs_HaveTheMembersOfTheirSchemas(t *testing.T) {
	t.Parallel()
	read := map[string]any{
		"core.noop": struct{}{}, TypeIdentity: identityConfig{}, "core.fail": failConfig{}, TypeDelay: delayConfig{},
		workflow.TypeChannelWrite: channelConfig{}, TypeStart: struct{}{}, TypeEnd: struct{}{}, TypeParallel: struct{}{},
		TypeConditional: conditionalConfig{}, TypeMerge: mergeConfig{}, TypeSetVariable: setVariableConfig{},
		TypeGetVariable: getVariableConfig{}, TypeLoop: loopConfig{}, TypeSubWorkflow: subWorkflowConfig{},
		TypeCostEmit: costConfig{}, TypeSecretEcho: secretConfig{}, typeHold: struct{}{}, TypeSideEffect: struct{}{},
		typeModelGated: struct{}{}, typeRequiresMissing: struct{}{},
	}
	// Those of other packages have tests there.
	elsewhere := []string{
		TypeMockAI,
		interrupt.TypeApprovalGate, interrupt.TypeClarificationGate, interrupt.TypeInterrupt,
		TypeCallPrompt, TypeStructuredOutput, TypeMCPCallTool, TypeA2ASendMessage,
	}
	types := Builtin().Conformance(nil).And(PeerTypes()...)
	for _, id := range types.IDs() {
		doc := types[id].ConfigSchema()
		require.NotNil(t, doc, "%s has no schema of its config", id)
		if slices.Contains(elsewhere, id) {
			continue
		}
		require.Contains(t, read, id)
		require.Equal(t, usedMembers(t, doc), membersOf(read[id]), id)
	}
}

// Every schema is closed, and each member has a description.
func TestConfigs_AreClosedAndDescribed(t *testing.T) {
	t.Parallel()
	types := Builtin().Conformance(nil).And(PeerTypes()...)
	for _, id := range types.IDs() {
		var object struct {
			Description string                     `json:"description"`
			Closed      *bool                      `json:"additionalProperties"`
			Properties  map[string]json.RawMessage `json:"properties"`
		}
		require.NoError(t, json.Unmarshal(types[id].ConfigSchema(), &object), id)
		require.NotEmpty(t, object.Description, id)
		require.NotNil(t, object.Closed, id)
		require.False(t, *object.Closed, id)
		found := types[id].LintConfig(json.RawMessage(`{"zzz":1,"x-mine":1}`))
		require.True(t, slices.ContainsFunc(found, func(p workflow.Problem) bool {
			return p.Path == "/zzz" && p.Rule == workflow.RuleUnknownMember
		}), "%s: %v", id, found)
	}
}
