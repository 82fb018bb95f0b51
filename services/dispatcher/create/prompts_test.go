package create_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// OpenWOP envelope contract §19.2: a run whose prompt cannot be composed is not created.
func TestExecutable_RefusesPromptsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	writer, err := prompt.Parse([]byte(`{"templateId":"writer","version":"1.0.0","kind":"user","text":"{{topic}}"}`))
	require.NoError(t, err)
	library, err := prompt.NewLibrary(writer)
	require.NoError(t, err)
	with := create.New(create.Deps{Checks: create.Checks{Types: node.Builtin(), Prompts: library}})
	without := create.New(create.Deps{Checks: create.Checks{Types: node.Builtin()}})
	def := func(typ, config string) *workflow.Definition {
		n := fmt.Sprintf(`{"id":"ai","typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":{}}`, typ, config)
		d, wrong := workflow.Parse([]byte(doc("w", nodeJSON("a", "core.noop")+","+n, `,"edges":[],"variables":[]`)))
		require.Empty(t, wrong)
		return d
	}
	for config, path := range map[string]string{
		`{"userPromptRef":"prompt:writer"}`:                        "",
		`{"promptId":"writer"}`:                                    "",
		`{"prompt":"own words"}`:                                   "",
		`{"userPromptRef":"prompt:gone"}`:                          "/nodes/1/config/userPromptRef",
		`{"userPromptRef":"prompt:writer@2.0.0"}`:                  "/nodes/1/config/userPromptRef",
		`{"systemPromptRef":"prompt:writer"}`:                      "/nodes/1/config/systemPromptRef",
		`{"additionalPromptRefs":["prompt:writer","prompt:gone"]}`: "/nodes/1/config/additionalPromptRefs/1",
		`{"promptId":"gone"}`:                                      "/nodes/1/config/promptId",
	} {
		err := with.CheckExecutable(def(node.TypeCallPrompt, config))
		if path == "" {
			require.NoError(t, err, config)
			continue
		}
		e, ok := fault.As(err)
		require.True(t, ok, config)
		require.Equal(t, fault.ValidationError, e.Code)
		require.Contains(t, e.Message, path+": ")
		require.Contains(t, e.Message, `node "ai"`)
		require.NoError(t, with.CheckExecutable(def("core.noop", config)), "other types have members of their own")
	}
	require.NoError(t, without.CheckExecutable(def(node.TypeCallPrompt, `{"promptId":"gone"}`)), "other hosts' names for their own prompts")
	e, ok := fault.As(without.CheckExecutable(def(node.TypeStructuredOutput, `{"userPromptRef":"prompt:writer","outputSchema":{}}`)))
	require.True(t, ok)
	require.Equal(t, fault.CapabilityRequired, e.Code)
	require.Equal(t, "prompts", e.Details["requiredCapability"])
	require.Contains(t, e.Message, "--prompts")
}
