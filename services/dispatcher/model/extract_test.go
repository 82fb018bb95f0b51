package model

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

const (
	task   = `{"title":"Call the printer","urgent":true}`
	sketch = `{"title":"draft","urgent":false}`
)

func taskSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.Compile("task", []byte(`{"type":"object","additionalProperties":false,"required":["title","urgent"],
		"properties":{"title":{"type":"string"},"urgent":{"type":"boolean"},"parts":{"type":"array","items":{"$ref":"#"}}}}`))
	require.NoError(t, err)
	return s
}

// answerOf returns the value of an answer, or what the model is told.
func answerOf(t testing.TB, s *schema.Schema, text string) (value, problem string) {
	t.Helper()
	e := &emission{spec: spec{expected: expectation{name: "answer", value: s}}}
	x := e.withoutCalls(extract(text))
	for _, d := range x.documents {
		require.True(t, json.Valid(d.raw), "%q in %q", d.raw, text)
		if d.path != pathText {
			require.True(t, strings.HasPrefix(text[d.offset:], string(d.raw)), "%d is not the offset of %q in %q", d.offset, d.raw, text)
		}
	}
	if len(x.documents) == 0 {
		return "", parseFailure(text, x).detail
	}
	d, violations, err := (&reader{budget: schema.NewBudget(len(text))}).chooseValue(t.Context(), x.documents, s)
	require.NoError(t, err)
	if len(violations) > 0 {
		return "", schemaFailure(violations).detail
	}
	return string(d.raw), ""
}

func TestExtract_FindsTheAnswer(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	for name, text := range map[string]string{
		"alone":                         task,
		"byte order mark":               "\uFEFF" + task,
		"line ends":                     "\r\n" + task + "\n\n",
		"prose before":                  "Here it is: " + task,
		"prose after":                   task + "\nThat is all.",
		"prose with brackets after":     task + " (see [1] and {this})",
		"prose braces":                  "Fill {title} and {urgent}: " + task,
		"odd brace in prose":            "A brace { is odd, and a \" quote. " + task,
		"many braces in prose":          strings.Repeat("{x} [y] ", 2000) + task,
		"citation":                      "According to [1], this is the task: " + task,
		"citations":                     "[1] read [2, 3] answer " + task + " [4]",
		"markdown link":                 "See [the manual](http://x.test/{a}): " + task,
		"echo of the input":             "Input: " + sketch + "\nOutput: " + task,
		"schema repeated":               `The schema {"type":"object","properties":{"title":{"type":"string"}}} wants: ` + task,
		"two objects":                   sketch + task,
		"two objects in lines":          sketch + "\n" + task,
		"second does not satisfy":       task + "\n" + `{"note":"done"}`,
		"fence":                         "```json\n" + task + "\n```",
		"fence without language":        "```\n" + task + "\n```",
		"fence in one line":             "```json " + task + "```",
		"fence without space":           "```" + task + "```\nand more",
		"fence of capitals":             "```JSON\n" + task + "\n```",
		"fence that is not closed":      "```json\n" + task,
		"fence with a comment":          "```json\n// the answer\n" + task + "\n```",
		"tildes":                        "~~~json\n" + task + "\n~~~",
		"two fences":                    "First try:\n```json\n" + sketch + "\n```\nOn reflection:\n```json\n" + task + "\n```",
		"fence of another language":     "```sh\nls {a,b}\n```\n```json\n" + task + "\n```",
		"broken fence, then a good one": "```json\n{\"title\":\"draft\",}\n```\nBetter:\n```json\n" + task + "\n```",
		"inline code":                   "Set `title` and `{urgent}`: " + task,
		"quote":                         "> " + task,
		"thinking":                      "<think>Maybe " + sketch + " would do? No.</think>\n\n" + task,
		"thinking, capitals":            "<THINK>" + sketch + "</THINK>" + task,
		"thinking not opened":           "Maybe " + sketch + " would do? No.\n</think>\n" + task,
		"thinking not opened, broken":   "Maybe {\"title\":\"a\", would do?\n</think>\n" + task,
		"thinking with odd brackets":    "<think>a { and \" and [</think>" + task,
		"thinking twice":                "<think>" + sketch + "</think> so <think>" + sketch + "</think>" + task,
		"thinking after prose":          "Let me see. <think>" + sketch + "</think>" + task,
		"thinking in a fence":           "<think>```json\n" + sketch + "\n```</think>```json\n" + task + "\n```",
		"thinking, other words":         "<thinking>" + sketch + "</thinking>" + task,
		"reasoning":                     "<reasoning>" + sketch + "</reasoning>" + task,
		"thinking of Mistral":           "[THINK]" + sketch + "[/THINK]" + task,
		"thinking of Kimi":              "◁think▷" + sketch + "◁/think▷" + task,
		"thinking of Seed":              "<seed:think>" + sketch + "</seed:think>" + task,
		"channels":                      "<|channel|>analysis<|message|>" + sketch + "<|end|><|start|>assistant<|channel|>final<|message|>" + task + "<|return|>",
		"channel of the answer alone":   sketch + "<|channel|>final<|message|>" + task,
		"tool call before the answer":   "<|channel|>commentary to=functions.look <|constrain|>json<|message|>" + sketch + "<|call|><|start|>assistant<|channel|>final<|message|>" + task + "<|return|>",
		"tool call after the answer":    "<|channel|>final<|message|>" + task + "<|end|><|start|>assistant<|channel|>commentary to=functions.log <|constrain|>json<|message|>" + sketch + "<|call|>",
		"all channels":                  "<|channel|>analysis<|message|>{\"title\":<|end|><|start|>assistant<|channel|>commentary<|message|>I will look.<|end|><|start|>assistant<|channel|>commentary to=functions.look <|constrain|>json<|message|>" + sketch + "<|call|><|start|>functions.look to=assistant<|channel|>commentary<|message|>" + sketch + "<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>" + task,
		"a tool call without an answer": "<|channel|>analysis<|message|>" + sketch + "<|end|><|start|>assistant to=functions.answer<|channel|>commentary <|constrain|>json<|message|>" + task + "<|call|>",
		"channels without marks":        "analysisMaybe " + sketch + ". assistantfinal" + task,
		"thinking in the final channel": "<|channel|>final<|message|><think>" + sketch + "</think>" + task,
		"thinking of Cohere":            "<|START_THINKING|>" + sketch + "<|END_THINKING|>" + task,
		"thought mark":                  "<|begin_of_thought|>" + sketch + "<|end_of_thought|>" + task,
		"JSON in a string":              string(quoted(task)),
		"JSON in a string in prose":     "```json\n" + string(quoted(task)) + "\n```",
		"special tokens around":         "<s>" + task + "</s>",
		"end mark":                      task + "<|im_end|>",
		"answer tags":                   "<answer>" + task + "</answer>",
		"HTML":                          "<pre><code>" + task + "</code></pre>",
		"broken draft, then a good one": "{\"title\":\"draft\",}\nBetter:\n" + task,
		"broken list, then a good one":  "[{\"title\":\"draft\",}]\n\n" + task,
		"remark after a fence":          "```json\n" + task + "\n```\nI did not choose " + sketch + " because it is late.",
		"remark after lines":            task + "\nThe old value " + sketch + " is wrong.",
		"draft, then a label":           sketch + "\nFinal: " + task,
		"draft in a label":              "Draft: " + sketch + "\nFinal: " + task,
		"answer in a code span":         "The answer is `" + task + "`.",
		"answer in bold":                "**Answer:** " + task,
		"answer in a list":              "1. " + task,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, text)
			require.Empty(t, problem)
			require.JSONEq(t, task, got)
		})
	}
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s)
	return b
}

// A mark, a fence or a document within a string of the answer belongs to the answer.
func TestExtract_LeavesStringsAlone(t *testing.T) {
	t.Parallel()
	for _, title := range []string{
		"use </think> tags", "<think>", "```json\n{}\n```", "{", "}", `a "quoted" word`, `\`, sketch, "[1]", "<|channel|>final", "◁/think▷",
	} {
		want := `{"title":` + string(quoted(title)) + `,"urgent":true}`
		for _, text := range []string{want, "Here: " + want, "```json\n" + want + "\n```", "<think>hm</think>" + want, want + " done"} {
			got, problem := answerOf(t, taskSchema(t), text)
			require.Empty(t, problem, text)
			require.JSONEq(t, want, got, text)
		}
	}
}

// What the model is told names the place, and nothing of its answer.
func TestExtract_TellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "it is empty",
		" \n":                       "it is empty",
		"I cannot do that.":         "it is text, not a JSON document",
		"<think>" + sketch:          "it ends after its thinking, without an answer",
		"<think>hm</think>":         "it ends after its thinking, without an answer",
		sketch + "</think> no":      "it ends after its thinking, without an answer",
		`{"title":"a",}`:            "its JSON has a trailing comma at byte 12",
		`So: {"title":"a" , }`:      "its JSON has a trailing comma at byte 17",
		`{'title': 'a'}`:            "its JSON is broken at byte 1: want a member name in double quotes here",
		`{title: "a"}`:              "its JSON is broken at byte 1: want a member name in double quotes here",
		`{"title":"a" "urgent":1}`:  "its JSON is broken at byte 13: want a comma or the end of the object here",
		`{"title":"Call "x" y"}`:    "its JSON is broken at byte 16: want a comma or the end of the object here",
		`{"title":True}`:            "its JSON is broken at byte 9: want a JSON value here",
		`{"title":"a"`:              "its JSON is broken at byte 12: the document ends too early; want a comma or the end of the object",
		"```json\n{\"title\":\n```": "its JSON is broken at byte 18: want a JSON value here",
		`[{"title":"a","urgent":`:   "its JSON is broken at byte 23: the document ends too early; want a JSON value",
		"<|channel|>analysis<|message|>" + sketch + "<|end|>":                                        "it ends after its thinking, without an answer",
		"<|channel|>commentary to=functions.x<|message|>" + sketch + "<|channel|>final<|message|>no": "it is text, not a JSON document",
		sketch + "\n[1] and [2, 3] say so: {title: 'a'":                                              "its JSON is broken at byte 57: want a member name in double quotes here",
		sketch + ` no: {"title":"a",`:                                                                "its JSON is broken at byte 50: the document ends too early; want a member name in double quotes",
	} {
		got, problem := answerOf(t, taskSchema(t), text)
		require.Empty(t, got, text)
		require.Equal(t, want, problem, text)
	}
}

// Good answers are wrapped, prefixed, repeated and cut at each byte: the result is the right answer or
// a failure, and never a part of the answer, a draft or the input.
func TestExtract_NeverGivesWrongData(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	s := taskSchema(t)
	answers := []string{
		task,
		`{"title":"a","urgent":true,"parts":[{"title":"b","urgent":false},{"title":"c","urgent":true,"parts":[]}]}`,
		`{"parts":[{"title":"b","urgent":false}],"title":"a } \" ]","urgent":true}`,
		"{\n  \"title\": \"é \\u00e9 {[\",\n  \"urgent\": true\n}",
	}
	before := []string{"", "Sure: ", "```json\n", "<think>" + sketch + "</think>", "Input: " + sketch + " Output: ", "[1] {x} ", sketch + "\n</think>\n"}
	after := []string{"", " Done.", "\n```", "\n```\nAnything else?", "<|im_end|>"}
	for _, answer := range answers {
		for _, head := range before {
			for _, tail := range after {
				got, problem := answerOf(t, s, head+answer+tail)
				require.Empty(t, problem, "%q", head+answer+tail)
				require.JSONEq(t, answer, got, "%q", head+answer+tail)
			}
			for cut := strings.IndexByte(answer, '"') + 1; cut < len(answer); cut++ {
				got, _ := answerOf(t, s, head+answer[:cut])
				require.Empty(t, got, "%q", head+answer[:cut])
				got, _ = answerOf(t, s, head+answer[:cut]+"\n```\nThat is it.")
				require.Empty(t, got, "%q", head+answer[:cut])
			}
			for _, bad := range []string{"{ // so\n" + answer[1:], "{, " + answer[1:], "{“x”: 1, " + answer[1:], "{$id: 1, " + answer[1:], "{a b, " + answer[1:], answer[:len(answer)-1] + ",}", "[" + answer, strings.Replace(answer, ":", "", 1), strings.Replace(answer, `"`, "'", 2)} {
				got, _ := answerOf(t, s, head+bad)
				require.Empty(t, got, "%q", head+bad)
			}
		}
	}
}

func TestExtract_IsBoundedForHostileAnswers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	const n = 200_000
	for _, piece := range []string{"[", "{", `{"`, `{"a":`, "[1,", "[x", "```", "```{", "<think>", "</think>", "◁think▷", "{x:", `["`, "<|channel|>", "`{`", `"{\"`, "</think>1 "} {
		extract(strings.Repeat(piece, n/len(piece))) // the timeout of the test is the assertion
		extract(strings.Repeat(piece, n/len(piece)) + task)
	}
}

// The work on a hostile answer is counted, and ends with its budget: what is tried last may exceed it by one pass
// over the text. Too many documents are as many as none, because the answer may follow.
func TestExtract_CountsItsWork(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	const n = 1 << 16
	for _, piece := range append([]string{
		"[", "{", `{"a":`, "[x", "{x:", `{'a':`, "[[1,", "{{", "```", "```{", "`{`", `"{\"`, `\"`, "\\", "{}", "[]", "[1]", "}", "]",
		"<think>", "</think>1 ", "<plan>x", "[thinking]", "[/thinking]", "<|thought|>", "<|channel|>", "\x1b[", "\n{", "<!--",
		"<tool_call>x\n", "</tool_call>", "[TOOL_CALLS]", "<function=x>{}", "<｜tool▁call▁begin｜>",
	}, markPairs()...) {
		text := strings.Repeat(piece, n/len(piece))
		s := searcher{text: text, budget: searchBudget(n), found: extraction{broken: -1}}
		s.run()
		require.Greater(t, s.budget, -2*n, piece)
		require.LessOrEqual(t, len(s.found.documents), searchBudget(n)/attempt, piece)
	}
}

// markPairs returns beginnings of thinking, each before what may end it.
func markPairs() (pairs []string) {
	for _, begins := range []string{
		"[thinking]", "\n[thinking]", "\n[thinking]\n", "[reasoning]:", "<think>", "<|thought|>", "<start_think>", "<draft>", "<draft>{", "<plan>",
		"['[thinking]", "{x:<think>",
	} {
		for _, ends := range []string{
			"[answer]", "[answer]\n", "[/thinking]", "[/thought]", "[end_thinking]", "</think>", "<|/thought|>", "<end_think>", "</draft>", "}", "']",
		} {
			pairs = append(pairs, begins+ends)
		}
	}
	return pairs
}

// Reading takes time in proportion to the text. If it takes the square of that, the test exceeds its limit.
func TestExtract_ReadsMarksInOnePass(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	const limit = time.Minute
	const size = 1 << 18
	pieces := []string{"[thinking][answer]", "[thinking]</draft>", "['[thinking]", "<draft>{"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, piece := range pieces {
			extract("- " + strings.Repeat(piece, size/len(piece)))
		}
		var names strings.Builder // each with a name of its own
		for i := range size / len("[think000000][answer]") {
			fmt.Fprintf(&names, "[think%06d][answer]", i)
		}
		extract(names.String())
	}()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("%d answers of %d bytes took more than %s", len(pieces)+1, size, limit)
	}
}

func FuzzExtract(f *testing.F) {
	f.Add("```json\n" + task + "\n``` or <think>" + sketch + "</think>[1]")
	f.Add(`{"title":"a",} {"title":"b"`)
	f.Fuzz(func(t *testing.T, text string) {
		x := extract(text)
		for _, d := range x.documents {
			if !json.Valid(d.raw) || !strings.HasPrefix(text[d.offset:], string(d.raw)) {
				t.Fatalf("%q is no document at %d of %q", d.raw, d.offset, text)
			}
		}
		if len(x.documents) > 0 && x.broken >= 0 {
			t.Fatalf("documents beside a broken one in %q", text)
		}
	})
}

func TestRepair_CorrectsTheNotationOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"title":"a","urgent":true,}`:                        `{"title":"a","urgent":true}`,
		`{'title': 'a', 'urgent': True}`:                      `{"title":"a","urgent":true}`,
		"{\"title\":\"a\nb\",\"urgent\":true}":                `{"title":"a\nb","urgent":true}`,
		`{"title":"Call "the" printer","urgent":true}`:        `{"title":"Call \"the\" printer","urgent":true}`,
		`{title: "a", urgent: false} // done`:                 `{"title":"a","urgent":false}`,
		"Here:\n```json\n{\"title\":\"a\" \"urgent\":1}\n```": `{"title":"a","urgent":1}`,
		`{"title":"a",} That is {all}.`:                       "", // the remark could belong to it
		`{"title":"a","parts":[{"title":"b"}],"urgent":tr`:    "",
		`{"title":"a","parts":[{"title":"b"},{"title":"c"`:    "",
		`{"title":"a","parts":[{"title":"b"}, ...],}`:         "",
		`{"title":"a`: "",
		strings.Repeat(`{"a":`, 100) + "1," + strings.Repeat("}", 100): "",
		`{"title":"` + strings.Repeat("a", maxRepairBytes) + `",}`:     "",
		"no JSON at all": "",
		// Where a value would be guessed, nothing is repaired.
		`{'title': 'It's late', 'urgent': False}`:                            "",
		`{'title': 'Don't call', 'urgent': True}`:                            "",
		`{'title': 'the printer's owner', 'urgent': True}`:                   "",
		`{'title': 'the users' printer', 'urgent': True}`:                    "",
		`{'title': 'the users\' printer', 'urgent': True}`:                   `{"title":"the users' printer","urgent":true}`,
		`{'title': "Bob's printer", 'urgent': True}`:                         `{"title":"Bob's printer","urgent":true}`,
		`{"title": 'He said "no"', "urgent": true}`:                          `{"title":"He said \"no\"","urgent":true}`,
		`{"title":"A 5" screen","urgent":true}`:                              "",
		`{"title":"\d+ items","urgent":true}`:                                "",
		`{"title":"caf\xe9","urgent":true}`:                                  "",
		`{"title":"x \N{DASH} y","urgent":true}`:                             "",
		`{"title":"C:\Users\me","urgent":true}`:                              "",
		`{"title":"\u00e","urgent":true}`:                                    "",
		`{"items":["a","b"],"total":-}`:                                      "",
		`{"items":["a","b"],"total":2e}`:                                     "",
		`{"items":["a","b"],"total":1e+}`:                                    "",
		`{"items":["a","b"],"total":}`:                                       "",
		`{"items":["a","b"],"total":007}`:                                    "",
		`{"items":["a","b"],"total":1_000}`:                                  "",
		`{"items":["a","b"],"total":1,000}`:                                  "",
		`{"items":["a","b"],"total":0x10}`:                                   "",
		`{"items":["a","b"],"total":5%}`:                                     "",
		`{"items":["a","b"],"total":3/4}`:                                    "",
		`{"items":["a","b"],"total":2 000}`:                                  "",
		`{"items":["a","b"],"total":Infinity}`:                               "",
		`{"items":["a","b"],"total":undefined}`:                              "",
		`{"items":["a","b",],"total":+5}`:                                    "",
		`{"items":["a" + x, "b"],"total":2}`:                                 "",
		`{"items":["a" + "x"],"total":2}`:                                    "",
		`{"items":["a",,"b"],"total":2}`:                                     "",
		`{"items":["a", b, c],"total":2}`:                                    "",
		`{"items":["a","b","total":2}`:                                       "",
		`{"title":"a", "b","urgent":true}`:                                   "",
		`{"title":"a","urgent":yes}`:                                         "",
		`{"title": Call the printer, "urgent": true}`:                        "",
		"{\"items\":[\"a\",\"b\" # and c\n],\"total\":3}":                    "",
		"{\"items\":[\"a\",\n// \"b\",\n\"c\"],\"total\":2}":                 `{"items":["a","c"],"total":2}`,
		`{"title":"""Call""","urgent":true}`:                                 "",
		"{\"title\":\"a\\\nb\",\"urgent\":true}":                             "",
		`{"title":"a";"urgent":true}`:                                        "",
		`{"title" => "a", "urgent" => true}`:                                 "",
		`{"title":"a","urgent":true,}<|im_end|>{"title":"b","urgent":false}`: `{"title":"a","urgent":true}`,
	} {
		d, ok := extract(text).repair(text)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.JSONEq(t, want, string(d.raw), text)
			require.Equal(t, pathRepair, d.path)
			require.Equal(t, strings.IndexByte(text, '{'), d.offset)
		}
	}
}
