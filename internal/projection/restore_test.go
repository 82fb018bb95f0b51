package projection_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
)

const ticket = `{"type":"object","required":["title","state"],"additionalProperties":false,"properties":{
	"reasoning":{"type":"string"},"title":{"type":"string","minLength":3},"due":{"type":["string","null"]},
	"state":{"anyOf":[{"type":"object","required":["kind"],"additionalProperties":false,"properties":{"kind":{"const":"open"},"note":{"type":"string"}}},
		{"type":"object","required":["kind"],"additionalProperties":false,"properties":{"kind":{"const":"shut"},"why":{"type":"string"},"note":{"type":["string","null"]}}}]},
	"labels":{"type":"object","additionalProperties":{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}},
	"context":{"type":"object"}}}`

func TestRestore_UndoesTheProjectionAndLeavesAllElse(t *testing.T) {
	t.Parallel()
	p := project(t, ticket, projection.OpenAI)
	for name, tc := range map[string]struct{ answer, want string }{
		"nothing to do":           {`{"title":"a","state":{"kind":"open"}}`, ``},
		"spaces and escapes stay": {"{ \"title\" : \"\\u00fc\\/\" ,\n \"state\":{\"kind\":\"open\"} }", ``},
		"first member goes": {
			`{ "reasoning":null , "title":"a","state":{"kind":"open"}}`,
			`{ "title":"a","state":{"kind":"open"}}`,
		},
		"last member goes": {
			`{"title":"a","state":{"kind":"open"} , "context":null }`,
			`{"title":"a","state":{"kind":"open"} }`,
		},
		"members between go": {
			`{"title":"a", "labels":null, "context":null, "state":{"kind":"open"}}`,
			`{"title":"a", "state":{"kind":"open"}}`,
		},
		"first and between": {
			`{"reasoning":null,"title":"a","labels":null,"state":{"kind":"open"},"context":null}`,
			`{"title":"a","state":{"kind":"open"}}`,
		},
		"all go":                     {`{"reasoning":null, "labels":null}`, `{}`},
		"null that is taken stays":   {`{"due":null,"title":"a","state":{"kind":"open"}}`, ``},
		"of the branch with the tag": {`{"state":{"note":null,"kind":"open"}}`, `{"state":{"kind":"open"}}`},
		"of the other branch": {
			`{"state":{"note":null,"kind":"shut","why":null}}`, `{"state":{"note":null,"kind":"shut"}}`,
		},
		"an unknown tag":  {`{"state":{"note":null,"kind":"ajar"}}`, ``},
		"no tag":          {`{"state":{"note":null}}`, ``},
		"an escaped name": {`{"\u0072easoning":null,"title":"a"}`, `{"title":"a"}`},
		"text": {
			`{"context":" {\"a\":[1.50,\"x\\\"\"]} ","reasoning":null}`, `{"context":{"a":[1.50,"x\""]}}`,
		},
		"entries": {
			`{"labels":[{"key":"a\"","value":{"n":null}}, {"value":{"n":12345678901234567890},"key":"b"}]}`,
			`{"labels":{"a\"":{},"b":{"n":12345678901234567890}}}`,
		},
		"no entries":                        {`{"labels":[]}`, `{"labels":{}}`},
		"an object where text was promised": {`{"context":{"a":1},"labels":{"x":{}}}`, ``},
		"another type":                      {`[1,null]`, ``},
		"an unknown member":                 {`{"else":null,"reasoning":null}`, `{"else":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want == "" {
				tc.want = tc.answer
			}
			before := strings.Clone(tc.answer)
			got, err := p.Restore(json.RawMessage(tc.answer))
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
			require.Equal(t, before, tc.answer)
		})
	}
}

func TestRestore_ReportsInvalidAnswers(t *testing.T) {
	t.Parallel()
	p := project(t, ticket, projection.Anthropic)
	open := project(t, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}`, projection.Anthropic)
	list := project(t, `{"type":"array"}`, projection.Anthropic)
	for name, tc := range map[string]struct {
		p                    *projection.Projection
		answer, path, reason string
	}{
		"no JSON":      {p, `{"title":`, "/title", "want a JSON value"},
		"a name twice": {p, `{"title":"a","title":"b"}`, "/title", "two members"},
		"too deep": {
			p,
			strings.Repeat("[", 128) + strings.Repeat("]", 128),
			strings.Repeat("/0", 127), "too deep",
		},
		"text that is no JSON": {p, `{"context":"secret words"}`, "/context", "want JSON written as text"},
		"a name twice in text": {p, `{"context":"{\"a\":1,\"a\":2}"}`, "/context", "two members"},
		"text too deep": {
			p,
			`{"context":"{\"a\":` + strings.Repeat("[", 126) + strings.Repeat("]", 126) + `}"}`,
			"/context", "too deep",
		},
		"text of another kind": {p, `{"context":"[]"}`, "/context", "another kind"},
		"a key twice": {
			p, `{"labels":[{"key":"a","value":{}},{"key":"\u0061","value":{}}]}`, "/labels/1",
			"each key once",
		},
		"an entry without key":   {p, `{"labels":[{"value":{}}]}`, "/labels/0", `"key"`},
		"an entry with more":     {p, `{"labels":[{"key":"a","value":{},"x":1}]}`, "/labels/0", `"key"`},
		"an entry that is none":  {p, `{"labels":[1]}`, "/labels/0", `"key"`},
		"a key that is no text":  {p, `{"labels":[{"key":1,"value":{}}]}`, "/labels/0", `"key"`},
		"no wrapping object":     {list, `["1"]`, "", `"value"`},
		"within the wrapping":    {list, `{"value":["x"]}`, "/value/0", "want JSON"},
		"one member twice":       {open, `{"a":"x","otherMembers":"{\"a\":1}"}`, "/otherMembers/a", "want it once"},
		"other members as array": {open, `{"a":"x","otherMembers":[]}`, "/otherMembers", "or null"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.p.Restore(json.RawMessage(tc.answer))
			require.Nil(t, got)
			var e *projection.AnswerError
			require.ErrorAs(t, err, &e)
			require.Equal(t, tc.path, e.Path)
			require.Contains(t, e.Reason, tc.reason)
			require.NotContains(t, e.Error(), "secret words")
		})
	}
}

func TestRestore_ReadsAdditionalMembers(t *testing.T) {
	t.Parallel()
	text := project(t, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}`, projection.Gemini)
	entries := project(t, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`, projection.Gemini)
	for name, tc := range map[string]struct {
		p            *projection.Projection
		answer, want string
	}{
		"none":                {text, `{"a":"x","otherMembers":null}`, `{"a":"x"}`},
		"an empty object":     {text, `{"a":"x","otherMembers":" { } "}`, `{"a":"x"}`},
		"text":                {text, `{"a":"x","otherMembers":"{\"b\":1,\"c\":{}}"}`, `{"a":"x","b":1,"c":{}}`},
		"text alone":          {text, `{"a":null,"otherMembers":"{\"b\":1}"}`, `{"b":1}`},
		"text first":          {text, `{"otherMembers":"{\"b\":1}","a":null}`, `{"b":1}`},
		"the name of an old":  {text, `{"a":null,"otherMembers":"{\"otherMembers\":1}"}`, `{"otherMembers":1}`},
		"an absent one of it": {text, `{"a":null,"otherMembers":"{\"a\":\"x\"}"}`, `{"a":"x"}`},
		"entries":             {entries, `{"a":"x","otherMembers":[{"key":"b","value":1}]}`, `{"a":"x","b":1}`},
		"no entries":          {entries, `{"a":"x","otherMembers":[]}`, `{"a":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.p.Restore(json.RawMessage(tc.answer))
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
		})
	}
}

func TestLift_ReportsWhatItCannotExpress(t *testing.T) {
	t.Parallel()
	p := project(t, `{"type":"object","properties":{"a":{"type":"string"},"l":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"object","properties":{"x":{"type":"null"}}}]}}},"required":["a"]}`, projection.OpenAI)
	for instance, path := range map[string]string{
		`{"a":"x","b":1}`:                  "/b",
		`{}`:                               "/a",
		`{"a":1}`:                          "/a",
		`[]`:                               "",
		`{"a":"x","l":["a",true]}`:         "/l/1",
		`{"a":"x","a":"y"}`:                "/a",
		`{"a":"x","l":[{"x":null,"y":1}]}`: "/l/0/y",
	} {
		_, err := p.Lift(json.RawMessage(instance))
		var e *projection.AnswerError
		require.ErrorAs(t, err, &e, instance)
		require.Equal(t, path, e.Path, instance)
	}
}

func ExampleProjection_Restore() {
	source := json.RawMessage(`{"type":"object","required":["title"],"additionalProperties":false,
		"properties":{"title":{"type":"string","maxLength":80},"due":{"type":"string","format":"date"},"context":{"type":"object"}}}`)
	p, problems := projection.Compile(source, projection.OpenAI)
	if len(problems) > 0 {
		fmt.Println(problems)
		return
	}
	payload, err := p.Restore(json.RawMessage(`{"title":"Call back","due":null,"context":"{\"caller\":7}"}`))
	fmt.Println(string(payload), err)
	// Output: {"title":"Call back","context":{"caller":7}} <nil>
}
