package pack_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/pack"
)

func withPrompts(own string, more map[string]string) []pack.Source {
	of := map[string]string{"waybill.json": own, "prompts/writer.json": `{"templateId":"writer"}`}
	for name, text := range more {
		of[name] = text
	}
	return edited(kindsOnly, of)
}

// The dispatcher validates templates: the pack only contains the file.
func TestLoad_ReadsThePromptTemplatesOfAPack(t *testing.T) {
	t.Parallel()
	packs, _, err := pack.Load(withPrompts(`{"prompts":["./prompts/writer.json"]}`, nil), pack.Host{})
	require.NoError(t, err)
	require.Equal(t, []pack.PromptFile{{File: "prompts/writer.json", Document: []byte(`{"templateId":"writer"}`)}}, packs[0].Prompts)
}

func TestLoad_RejectsPromptsOutsideThePack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		own, says string
		more      map[string]string
	}{
		"none":                {`{"prompts":[]}`, `waybill.json at "/prompts"`, nil},
		"a way out":           {`{"prompts":["../writer.json"]}`, `"/prompts/0": want a path within the pack`, nil},
		"a file that is away": {`{"prompts":["prompts/gone.json"]}`, `"/prompts/0": prompts/gone.json: the pack has no such file`, nil},
		"a file twice":        {`{"prompts":["prompts/writer.json","./prompts/writer.json"]}`, `"/prompts/1": the pack already lists this file`, nil},
		"no JSON":             {`{"prompts":["prompts/writer.json"]}`, `prompts/writer.json at ""`, map[string]string{"prompts/writer.json": `{`}},
	} {
		_, _, err := pack.Load(withPrompts(tc.own, tc.more), pack.Host{})
		require.ErrorContains(t, err, tc.says, name)
	}
}
