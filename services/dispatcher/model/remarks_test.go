package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// remarks are pieces of prose with brackets that are no documents.
var remarks = []string{
	"Fill {{title}} and {{ urgent }}.",
	"See [[the manual]] and [[x|y]].",
	"Call f({title: t}) or f({title, urgent}).",
	"It has the form {…}, or {...}, or [...].",
	"Half is \\frac{1}{2}, and x_{i}^{2} is $\\sqrt{x}$.",
	"a { color: red; } b{margin:0}",
	"map[string]int{\"a\": 1, \"b\": n}",
	"if (x) { return [a, b]; } else { throw e }",
	"const f = (x) => { return {title: x}; };",
	"const t = {\"title\": name, \"urgent\": late};",
	"xs[0], xs[\"title\"] and xs[i][1]",
	"See [the manual](https://x.test/{id}) and [1](#a).",
	"The set {1, 2} and {a, b}, the interval [0, 1) and (0, 1].",
	"Good {😀} and [🙂] :-} :]",
	"As shown in [1], [2, 3] and [4].",
	"- [ ] open\n- [x] done",
	"${HOME}/bin and {% if a %} and {# note #} and <%= x %>",
	"Use `{\"title\": t}` as the format.",
	"The format is {\"title\": ..., \"urgent\": ...} here.",
	"Schema: {\"title\": string, \"urgent\": boolean}",
	"Format:\n```json\n{\n  \"title\": \"...\",\n  \"urgent\": boolean | null,\n  ...\n}\n```",
	"[{\"title\": <string>, ...}]",
	"SELECT 1 -- {",
	"\\begin{align} a &= b \\end{align}",
	"```go\nfunc main() {\n\tfmt.Println(map[string]bool{\"urgent\": ok})\n}\n```",
	"```css\na { color: red }\n```",
	"```js\nconst a = {title: \"x\", list: [1, 2]};\n```",
	"```python\nprint({\"title\": t, \"urgent\": False})\n```",
	"A brace { is odd.",
	"A bracket [ is odd.",
	"{} is empty, and so is [].",
	"[INFO] 12:30 [main] {thread=1}",
	"[12:30] started",
}

// Prose with brackets around an answer costs no call.
func TestExtract_PassesOverRemarks(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	answers := map[string]string{"line": task, "fence": "```json\n" + task + "\n```", "label": "Answer: " + task}
	for _, remark := range remarks {
		for name, answer := range answers {
			for _, text := range []string{
				remark + "\n" + answer, remark + "\n\n" + answer + "\n", answer + "\n" + remark, answer + "\n\n" + remark + "\n" + remark,
				remark + "\n" + answer + "\n" + remark,
			} {
				got, problem := answerOf(t, s, text)
				require.Empty(t, problem, "%s: %q", name, text)
				require.JSONEq(t, task, got, "%s: %q", name, text)
			}
		}
		got, _ := answerOf(t, s, remark)
		require.Empty(t, got, remark)
	}
}

// All pairs of remarks before, between and after a draft and the answer, and before a broken answer.
func TestExtract_PassesOverPairsOfRemarks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	s := taskSchema(t)
	for _, a := range remarks {
		for _, b := range remarks {
			got, problem := answerOf(t, s, sketch+"\n"+a+"\nFinal:\n"+task+"\n"+b)
			require.Empty(t, problem, "%q %q", a, b)
			require.JSONEq(t, task, got, "%q %q", a, b)
			for _, bad := range []string{`{"title":"a","urgent":true,}`, `{"title":"a","parts":[` + sketch, "{title: 'a', urgent: true}"} {
				got, _ = answerOf(t, s, sketch+"\n"+a+"\nFinal: "+bad+"\n"+b)
				require.Empty(t, got, "%q %q %q", a, bad, b)
			}
		}
	}
}

// A citation, a link or an empty value amid prose is no answer, whatever the schema.
func TestExtract_TakesNoRemarkForTheAnswer(t *testing.T) {
	t.Parallel()
	for source, texts := range map[string]map[string]string{
		`{"type":"array","items":{"type":"integer"}}`: {
			"As shown in [2], there are none.":       "",
			"[1] Smith 2020\n[2] Jones 2021":         "",
			"See [1](#a) and xs[0].":                 "",
			"The primes:\n[2, 3, 5]\nas in [1].":     "[2, 3, 5]",
			"```json\n[2]\n```\nsee [1]":             "[2]",
			"No results, see [2]:\n```json\n[]\n```": "[]",
			"[2, 3]\n[5]":                            "[5]",
			"First [1, 2]\n[1, 2, 3,]":               "",
			"[1, 2]\n[1, 2, 3":                       "",
			"[]\n[7]\n[]":                            "[7]",
			"Result: [4, 5]":                         "[4, 5]",
			"[9]":                                    "[9]",
			"I read [1] and [2].\n\n[3]":             "",
			"1. [8]":                                 "[8]",

			"The matrix [[1,2],[3,4]] is no answer, [5 is cut": "",
		},
		`{"type":"object"}`: {
			"The object {} is empty.":                                      "",
			`<tool_call>{"name":"search","arguments":{"q":1}}</tool_call>`: "",
			"{}":                                  "{}",
			"Nothing: {}":                         "{}",
			"{}\n{\"a\":1}\n{}":                   `{"a":1}`,
			"Not {\"a\":1} but {\"b\":2} fits.":   `{"b":2}`,
			"{\"a\":1}\nNot {\"b\":2} as before.": `{"a":1}`,
			"```json\n{}\n```\nThe value {\"a\":1} is gone.": `{}`,
		},
		`{"type":"array","items":{"type":"string"}}`: {
			`Read xs["title"] first.`:            "",
			`Tags: ["a","b"]`:                    `["a","b"]`,
			`The tags ["a"] are old. ["b"]`:      `["b"]`,
			"[\"a\"]\nNot [\"b\"] (see below).":  `["a"]`,
			`Input ["a"]; output ["a", "b`:       "",
			"[\"a\"]\n[\"a\", 'b']":              "",
			"[\"a\"]\n- [ ] check\n- [x] ok\n[]": `["a"]`,
		},
	} {
		s, err := schema.Compile("kind", []byte(source))
		require.NoError(t, err)
		for text, want := range texts {
			got, _ := answerOf(t, s, text)
			require.Equal(t, want, got, "%s: %q", source, text)
		}
	}
}

// One document wins, whatever is around it: documents alone in their lines before others, documents with
// members before empty ones, later before earlier ones.
func TestRank_OrdersEveryPair(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("kind", []byte(`{"type":"object"}`))
	require.NoError(t, err)
	forms := []struct {
		text, value string
		rank        int
	}{
		{"```json\n{\"n\":1}\n```", `{"n":1}`, 0},
		{`{"n":2}`, `{"n":2}`, 0},
		{"{\n \"n\": 3\n}", "{\n \"n\": 3\n}", 0},
		{`Answer: {"n":4}`, `{"n":4}`, 0},
		{`> {"n":5}`, `{"n":5}`, 0},
		{"{}", "{}", 1},
		{"```\n{}\n```", "{}", 1},
		{`It is {"n":6} now`, `{"n":6}`, 2},
		{`a {"n":7}, b`, `{"n":7}`, 2},
		{`Final: {"n":8} That is all.`, `{"n":8}`, 0},
		{`{"n":9} it is.`, `{"n":9}`, 0},
		{`{"m":0} becomes {"n":0}`, `{"n":0}`, 2},
	}
	for _, a := range forms {
		for _, b := range forms {
			want := b.value
			if a.rank < b.rank {
				want = a.value
			}
			got, problem := answerOf(t, s, a.text+"\n\n"+b.text+"\n")
			require.Empty(t, problem)
			require.Equal(t, want, got, "%q %q", a.text, b.text)
		}
	}
}

// A broken draft may be followed by a good answer, but no part of it is one.
func TestExtract_GoesOnAfterABrokenDocument(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	inner := `{"title":"b","urgent":false}`
	for _, broken := range []string{
		`{"title":"a","parts":[` + inner + `],}`,
		"{\n  \"title\": \"a\",\n  \"parts\": [\n    " + inner + "\n  ],\n}",
		"{\n  \"title\": \"a }\n  \", \"parts\": [\n    " + inner + "\n  ]\n}",
		"{\n  \"title\": \"a\" }\",\n  \"parts\": [\n    " + inner + "\n  ]\n}",
		"{'title': 'a', 'parts': [" + inner + "]}",
		`[` + inner + `, {"title":}]`,
		`{{"title":"a","urgent":true}}`,
	} {
		got, _ := answerOf(t, s, broken)
		require.Empty(t, got, broken)
		got, _ = answerOf(t, s, "It is:\n"+broken+"\nDone.")
		require.Empty(t, got, broken)
		got, _ = answerOf(t, s, broken+"\nBetter:\n"+task)
		require.Contains(t, []string{"", task}, got, broken)
	}
}

// Each byte of an answer is removed, doubled and replaced: the result is the answer, a document that the
// model could have meant, or a failure.
func TestExtract_OfMutationsIsTheWholeDocumentOrNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	s := taskSchema(t)
	answers := []string{
		`{"title":"a","urgent":true,"parts":[{"title":"b","urgent":false},{"title":"c","urgent":true,"parts":[]}]}`,
		"{\n  \"title\": \"a } b\",\n  \"urgent\": true,\n  \"parts\": [\n    {\n      \"title\": \"b\",\n      \"urgent\": false\n    }\n  ]\n}",
	}
	heads := []string{"", "```json\n", sketch + "\nFinal:\n", "[1] {x} "}
	tails := []string{"", "\n```\nDone."}
	for _, answer := range answers {
		for i := range len(answer) {
			for _, with := range []string{"", "\"", "'", "{", "}", "[", "]", ",", ":", "\\", "\n", "x", answer[i:i+1] + answer[i:i+1]} {
				mutated := answer[:i] + with + answer[i+1:]
				for _, head := range heads {
					for _, tail := range tails {
						got, _ := answerOf(t, s, head+mutated+tail)
						whole := got == "" || strictjson.Same([]byte(got), []byte(answer)) || got == strings.TrimSpace(mutated)
						draft := got == sketch && json.Valid([]byte(mutated)) // the mutated one violates the schema
						if !whole && !draft {
							t.Fatalf("%q gave %q", head+mutated+tail, got)
						}
					}
				}
			}
		}
	}
}
