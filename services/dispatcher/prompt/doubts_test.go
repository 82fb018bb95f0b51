package prompt_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDoubts_FindProbableMistakesOfATemplate(t *testing.T) {
	t.Parallel()
	const name = `[{"name":"name","type":"string","required":true}]`
	template := func(text, variables string) string {
		return `{"templateId":"w","version":"1.0.0","kind":"user","text":"` + text + `","variables":` + variables + `}`
	}
	for doc, want := range map[string][]string{
		template("Hello {{nam}}", name):                     {"/text", "did you mean name?", "/variables/0/name", "no place"},
		template("Hello", name):                             {"/variables/0/name", "no place for the variable name"},
		template("{{name}} {{name.first}}", name):           {"/text", "{{name.first}} stays as it is"},
		template("Hello {name}", name):                      {"/text", "{name} stays as it is; write {{name}}"},
		template("Hello ${name}", name):                     {"/text", "${name} stays as it is; write {{name}}"},
		template("{{name}}{% if name %}x{% endif %}", name): {"/text", "{% if name %}"},
		template("{{ name | upper }} {{name}}", name):       {"/text", "{{ name | upper }}"},
		template("{{name}} {{#list}}{{/list}}", name):       {"/text", "{{#list}}"},
		template("Hello {{name} you", name):                 {"/variables/0/name", "no place", "/text", "{{name} is not closed"},
		template("Hello {{name}", name):                     {"/variables/0/name", "no place", "/text", "{{name} is not closed"},
		template("", `[]`):                                  {"/text", "empty"},
		template(" \\n", `[]`):                              {"/text", "empty"},
		template("{{a}}", `[{"name":"a","type":"string","required":true,"defaultValue":"x"}]`): {"/variables/0/defaultValue", "no effect"},
		template("{{a}}", `[{"name":"a","type":"string","required":true,"source":"secret"}]`):  {"/variables/0/source", "credential_unavailable"},
		template("{{a}}", `[{"name":"a","type":"string","required":true,"source":"context"}]`): {"/variables/0/name", "runId, nodeId, workflowId, tenant"},
		`{"templateId":"w","version":"1.0.0","kind":"user","text":"x","tags":["a","a"]}`:       {"/tags/1", "twice"},
	} {
		found := parse(t, doc).Doubts()
		require.Len(t, found, len(want)/2, "%s: %v", doc, found)
		for i, p := range found {
			require.Equal(t, want[2*i], p.Path, doc)
			require.Contains(t, p.Message, want[2*i+1], doc)
		}
	}
}

func TestDoubts_AcceptWhatIsMeant(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{
		`{"templateId":"w","version":"1.0.0","kind":"user","text":"{{a}} {{{a}}} {{& a}} as {\"a\":{\"b\":{}}} or {a} in 50% {%","variables":[{"name":"a","type":"string","required":true}]}`,
		`{"templateId":"w","version":"1.0.0","kind":"user","text":"{{runId}} {{me}}","variables":[
			{"name":"runId","type":"string","required":true,"source":"context"},{"name":"me","type":"string","required":true,"source":"context","extractPath":"$.tenant"}]}`,
		`{"templateId":"w","version":"1.0.0","kind":"user","text":"{{a}}","variables":[{"name":"a","type":"string","required":false,"defaultValue":"x"}],"tags":["a","b"]}`,
		`{"templateId":"w","version":"1.0.0","kind":"system","text":"You are a clerk. Answer as {\"ticket\": {\"id\": 1}}."}`,
	} {
		require.Empty(t, parse(t, doc).Doubts(), doc)
	}
}
