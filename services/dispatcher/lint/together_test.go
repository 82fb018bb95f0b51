package lint_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
)

// caller is a definition with a node that runs another workflow. more are further members of the definition.
func caller(id, to, config, more string) string {
	return fmt.Sprintf(`{"id":%q,"name":"w","version":"1","nodes":[{"id":"s","typeId":"core.subWorkflow","config":{"workflowId":%q%s}},{"id":"n","typeId":"core.noop"}]%s}`, id, to, config, more)
}

func TestCheckTogether_FindsWhatOneFileDoesNotShow(t *testing.T) {
	t.Parallel()
	const (
		text   = `,"variables":[{"name":"text","type":"string"}]`
		branch = `,"edges":[{"id":"e","sourceNodeId":"n","targetNodeId":"s","condition":{"expression":"variables.text != ''"}}]`
	)
	child := func(required bool) string {
		return fmt.Sprintf(`{"id":"fb","name":"w","version":"1","nodes":[{"id":"a","typeId":"core.setVariable","config":{"name":"result","value":1}},
			{"id":"b","typeId":"core.ai.callPrompt","config":{"prompt":"{{text}}"}}],"variables":[{"name":"text","type":"string","required":%t}]}`, required)
	}
	for name, tc := range map[string]struct {
		docs []string
		path string // of the first definition; empty without a finding
		says string
	}{
		"each other":              {[]string{caller("fa", "fb", "", ""), caller("fb", "fa", "", "")}, "/nodes/0/config/workflowId", "fa->fb->fa"},
		"in a ring":               {[]string{caller("fa", "fb", "", ""), caller("fb", "fc", "", ""), caller("fc", "fa", "", "")}, "/nodes/0/config/workflowId", "fa->fb->fc->fa"},
		"a ring elsewhere":        {[]string{caller("fa", "fb", "", ""), caller("fb", "fc", "", ""), caller("fc", "fb", "", "")}, "", ""},
		"a condition":             {[]string{caller("fa", "fb", "", ""), caller("fb", "fa", "", text+branch)}, "", ""},
		"a condition of its own":  {[]string{caller("fa", "fb", "", text+branch), caller("fb", "fa", "", "")}, "", ""},
		"an unknown one":          {[]string{caller("fa", "elsewhere", "", ""), child(false)}, "", ""},
		"a misspelled one":        {[]string{caller("main", "summarise", "", ""), caller("summarize", "other", "", "")}, "/nodes/0/config/workflowId", "did you mean summarize?"},
		"a misspelled input":      {[]string{caller("fa", "fb", `,"inputMapping":{"txet":"text"}`, text), child(false)}, "/nodes/0/config/inputMapping/txet", "did you mean text?"},
		"a required input":        {[]string{caller("fa", "fb", "", ""), child(true)}, "/nodes/0/config/inputMapping", "requires the input text"},
		"a misspelled output":     {[]string{caller("fa", "fb", `,"outputMapping":{"got":"reslt"}`, ""), child(false)}, "/nodes/0/config/outputMapping/got", "did you mean result?"},
		"sound mappings":          {[]string{caller("fa", "fb", `,"inputMapping":{"text":"text"},"outputMapping":{"got":"result"}`, text), child(true)}, "", ""},
		"several versions":        {[]string{caller("fa", "fb", "", ""), child(true), `{"id":"fb","name":"w","version":"2","nodes":[{"id":"n","typeId":"core.noop"}]}`}, "", ""},
		"a node that is disabled": {[]string{`{"id":"fa","name":"w","version":"1","nodes":[{"id":"s","typeId":"core.subWorkflow","disabled":true,"config":{"workflowId":"fb"}}]}`, child(true)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defs := make([]*workflow.Definition, len(tc.docs))
			for i, doc := range tc.docs {
				var wrong []workflow.Problem
				defs[i], wrong = workflow.Parse([]byte(doc))
				require.Empty(t, wrong)
			}
			found := host().CheckTogether(defs)[0]
			if tc.path == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, tc.path, found[0].Path)
			require.Contains(t, found[0].Message, tc.says)
		})
	}
}

func TestCheckTogether_FindsTheSameIDAndVersion(t *testing.T) {
	t.Parallel()
	def, wrong := workflow.Parse([]byte(caller("fa", "fb", "", "")))
	require.Empty(t, wrong)
	found := host().CheckTogether([]*workflow.Definition{def, nil, def})
	require.Empty(t, found[0])
	require.Empty(t, found[1])
	require.Equal(t, []string{"/id unique"}, paths(found[2]))
}
