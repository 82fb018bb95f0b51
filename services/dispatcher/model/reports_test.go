package model

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

// Answers that were reported in public, in forms that no other test of this package has.
func TestReports_FindTheAnswer(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	spread := "{\n  \"title\": \"Call the printer\",\n  \"urgent\": true\n}"
	for name, text := range map[string]string{
		// Thinking.
		"Pangu":                          "[unused16]Maybe " + sketch + "[unused17]" + task,
		"Pangu, not opened":              "Maybe {\"title\":[unused17]" + task,
		"bars with begin and end":        "<|begin_of_thinking|>{\"title\":<|end_of_thinking|>" + task,
		"bars with a start":              "<|thinking_start|>{\"title\":<|thinking_end|>" + task,
		"bars of thoughts":               "<|thought|>{\"title\":<|/thought|>" + task,
		"full-width bars, broken":        "<｜begin▁of▁thinking｜>{\"title\":<｜end▁of▁thinking｜>" + task,
		"bars, not opened":               "{\"title\":<|end_of_reasoning|>" + task,
		"a tag that starts":              "<start_think>{\"title\":<end_think>" + task,
		"square brackets":                "[thinking]{\"title\":[/thinking]" + task,
		"square brackets, capitals":      "[REASONING]\nMaybe " + sketch + "\n[/REASONING]\n" + task,
		"square brackets, not opened":    "{\"title\": maybe[/thought]" + task,
		"a label with end in it":         task + "\n\n[recommendation_rationale]: the printer is down.",
		"a label with end as a word":     task + "\n\n[end_rationale]: the printer is down.",
		"a remark on reasoning":          "See [reasoning] below.\n" + task + "\nIt is urgent.",
		"a remark on an end":             task + "\nI left out the [end_thinking] mark, as asked.",
		"square brackets and a heading":  "[thinking]\nMaybe " + sketch + "\n[answer]\n" + task,
		"a heading in the line":          "[Reasoning] Maybe " + sketch + "\n[Final answer] " + task,
		"an end in words":                "[reasoning]" + sketch + "[end_reasoning]" + task,
		"a variable":                     "analysisResult = " + task,
		"a variable in a fence":          "analysisResult:\n```json\n" + task + "\n```",
		"Granite, an answer in a fence":  "Here's my thought process: maybe " + sketch + ".\n\n```json\n" + task + "\n```",
		"Ollama, an answer in a fence":   "Thinking...\n```json\n" + task + "\n```\nDone.",
		"a wrapper named draft":          "<draft>" + task + "</draft>",
		"a wrapper after a remark":       "Here you are:\n<draft>\n" + task + "\n</draft>\n",
		"channels in one word":           "assistantanalysisMaybe {\"title\":.assistantfinal" + task,
		"channels, a call between":       "analysisMaybe.assistantcommentary to=functions.look json" + sketch + "assistantfinal" + task,
		"Granite":                        "Here is my thought process:\nMaybe {\"title\":\n\nHere is my response:\n" + task,
		"Granite, another word":          "Here's my thought process: " + sketch + "\nHere's my response: " + task,
		"an analysis, then the answer":   "<analysis>\nMaybe {\"title\": so.\n</analysis>\n" + task,
		"a plan, then the answer":        "<plan>1. {\"title\": x\n2. done</plan>\n" + task,
		"a wrapper named analysis":       "<analysis>" + task + "</analysis>",
		"a wrapper named plan, lines":    "<plan>\n" + spread + "\n</plan>",
		"thinking, then a tool call tag": "<think>hm</think> <tool_call> " + task + " </tool_call>",
		"thinking that names a mark":     "<think>I write [THINK] first: " + sketch + "</think>" + task,
		"a list that names thinking":     "[\"thinking\", \"done\"]\n" + task,
		"a link that names thinking":     "See [my thoughts](https://x.test): " + task,
		"a mark in prose, then the end":  "I use <think> tags. " + sketch + "</think>" + task,
		"thinking, an answer in quotes":  "<think>hm</think>\n\"\"\"json\n" + task + "\n\"\"\"",
		"Kimi, capitals":                 "◁THINK▷" + sketch + "◁/THINK▷" + task,
		"two kinds of thinking":          "<think>" + sketch + "</think><reflection>{\"title\":</reflection>" + task,
		"a tag of Windows":               "<think>\r\n" + sketch + "\r\n</think>\r\n\r\n" + task + "\r\n",

		// Citations.
		"OpenAI's citations":       task + "【4:0†printers.pdf】",
		"citations before":         "Per 【3:1†a.pdf】 and 【3:2†b.pdf】: " + task,
		"footnotes":                "As noted[^1], the task is: " + task + "\n\n[^1]: The mail of [Monday].",
		"a cite tag":               "<cite index=\"1-2,3-1\">The printer</cite> is down: " + task,
		"sources in a tag":         "<sources>[1] [2]</sources>\n" + task,
		"numbers with a link":      "The printer is down [[1]](https://x.test). " + task,
		"a list of sources last":   task + "\n\nSources:\n- [1] https://x.test/{id}\n- [2] https://y.test",
		"superscripts and entries": "Down¹ [a].\n\n" + task + "\n\n¹ {see log}",

		// Wrappers.
		"ANSI colours":                   "\x1b[1m\x1b[32m" + task + "\x1b[0m",
		"ANSI colours in prose":          "\x1b[32mDone:\x1b[0m " + task,
		"escaped line ends":              `\n` + task + `\n`,
		"a paragraph":                    "<p>" + task + "</p><br/>",
		"a code element":                 "<code class=\"language-json\">" + task + "</code>",
		"a marker of a tool's end":       "<|tool_call_start|>" + task + "<|tool_call_end|>",
		"a parameter tag":                "<parameters>" + task + "</parameters>",
		"an empty fence after":           "```json\n" + task + "\n```\n\n```json\n```",
		"a fence closed with a language": "```json\n" + task + "\n```json",
		"a fence with a comma last":      "```json\n" + task + ",\n```",
		"an indented fence":              "    ```json\n    " + task + "\n    ```",
		"a quoted fence":                 "\"```json\n" + task + "\n```\"",
		"a fence of four and three":      "````\n```json\n" + task + "\n```\n````",
		"a fence in details":             "<details><summary>JSON</summary>\n\n```json\n" + task + "\n```\n</details>",
		"a fence of tildes in it":        "~~~\n```json\n" + task + "\n```\n~~~",
		"a fence and a comment":          "```json\n" + task + "\n```\n<!-- " + sketch + " -->",
		"an answer in an attribute":      "<answer value='" + task + "'/>",
		"a label in brackets":            "[ANSWER] " + task + " [/ANSWER]",
		"a role in brackets":             "[ASSISTANT]: " + task,
		"end marks in a row":             task + "</s><|im_end|><|eot_id|><end_of_turn>",
		"an end mark and more text":      task + "<|im_end|>\n<|im_start|>user\nThanks!",
		"repeated three times":           task + "\n" + task + "\n" + task,
		"repeated without space":         task + task,
		"repeated in another order":      `{"urgent":true,"title":"Call the printer"}` + "\n" + task,
		"repeated as JSON text":          task + "\n" + string(quoted(task)),
		"braces of a template":           "{% raw %}" + task + "{% endraw %}",
		"a semicolon and a comment":      task + "; // done",
		"a prompt of a shell":            "$ echo '" + task + "'\n" + task,
		"an HTTP response":               "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + task,
		"a data line":                    "data: " + task + "\n\ndata: [DONE]",
		"a log of JSON":                  `{"level":"info","msg":"start"}` + "\n" + task + "\n" + `{"level":"info","msg":"end"}`,
		"an error, then the answer":      `{"error":{"message":"retry"}}` + "\n" + task,
		"a search, then the answer":      `<tool_call>{"name":"search","arguments":{"q":"printer"}}</tool_call>` + "\n" + task,
		"Mistral, another tool":          `[TOOL_CALLS][{"name":"search","arguments":{"q":1}}]` + "\n" + task,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, text)
			require.Empty(t, problem, "%q", text)
			require.JSONEq(t, task, got, "%q", text)
		})
	}
}

// A draft is never taken for an answer that is missing, broken or cut.
func TestReports_TakeNoDraft(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	for name, text := range map[string]string{
		"Pangu, no answer":                "[unused16]Maybe " + sketch + "[unused17]I cannot tell.",
		"Pangu, cut":                      "[unused16]Maybe " + sketch,
		"bars, no answer":                 "<|begin_of_thinking|>" + sketch + "<|end_of_thinking|>None.",
		"bars, cut":                       "<|thinking_start|>" + sketch + " or",
		"bars of thoughts, no answer":     "<|thought|>" + sketch + "<|/thought|>",
		"full-width bars, no answer":      "<｜begin▁of▁thinking｜>" + sketch + "<｜end▁of▁thinking｜>",
		"bars, not opened, no answer":     sketch + "<|end_of_reasoning|> no",
		"a tag that starts, no answer":    "<start_think>" + sketch + "<end_think>",
		"square brackets, no answer":      "[thinking]" + sketch + "[/thinking] I cannot tell.",
		"square brackets, cut":            "[THINKING]\n" + sketch,
		"a draft, cut":                    "<draft>" + sketch,
		"Granite, cut in a remark":        "Here's my thought process: " + sketch + " or",
		"square brackets, a heading":      "[thinking]\n" + sketch + "\n[answer]\nI cannot tell.",
		"channels in one word, no answer": "assistantanalysisMaybe " + sketch + ".assistantfinalI cannot tell.",
		"channels in one word, cut":       "assistantanalysisMaybe " + sketch + " would do",
		"channels without marks, cut":     "analysisWe need JSON. Maybe " + sketch + "?",
		"channels, a call and no answer":  "analysisWe look. " + sketch + "assistantcommentary to=functions.look",
		"Granite, no answer":              "Here is my thought process: Maybe " + sketch + ".\n\nHere is my response: I cannot tell.",
		"Granite, cut":                    "Here is my thought process:\n" + sketch + "\n",
		"printed by Ollama, cut":          "Thinking...\nMaybe " + sketch + "?\n",
		"an analysis, no answer":          "<analysis>\nMaybe " + sketch + "?\n</analysis>\nI cannot tell.",
		"an analysis, cut":                "<analysis>\nMaybe " + sketch + "?\nOr",
		"a plan, no answer":               "<plan>First " + sketch + ", then more.</plan>",
		"planning, no answer":             "<planning>I try " + sketch + "</planning>",
		"a brainstorm, no answer":         "<brainstorming>One: " + sketch + "</brainstorming>\nNo.",
		"a draft, no answer":              "<draft>" + sketch + "</draft>\nI cannot tell.",
		"a critique, no answer":           "<critique>Not " + sketch + " again.</critique>",
		"a slash forgotten":               "<think>\n" + sketch + "\n<think>",
		"repeated and cut":                sketch + "\n" + task[:25],
		"repeated and cut at the brace":   sketch + "{",
		"a second answer of JSON5":        sketch + "\nCorrected:\n{title: 'Call', urgent: true}",
		"an answer in HTML entities":      strings.ReplaceAll(sketch, `"`, "&quot;"),
		"an answer in escapes":            strings.ReplaceAll(sketch, `"`, `\"`),
		"an answer in wide quotes":        strings.ReplaceAll(sketch, `"`, "＂"),
		"a call of a tool, cut":           `<tool_call>{"name":"answer","arguments":` + sketch,
		"text of three layers":            string(quoted(string(quoted(string(quoted(sketch)))))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, text)
			require.Empty(t, got, "%q", text)
			require.NotEmpty(t, problem)
		})
	}
}

// A value keeps its digits, its escapes and its order, and is not changed on the way.
func TestReports_KeepTheValue(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("kind", []byte(`{"type":"object","required":["n"],"properties":{"n":{}}}`))
	require.NoError(t, err)
	for _, value := range []string{
		"12345678901234567890123", "1.10", "-0", "0.1e-7", "1E400", `"\u0000"`, `"\/"`, `"a\u2028b"`, `[[],{},"",0,null,false]`,
		`{"z":1,"a":2}`, `"<think>"`, `"{\"n\":1}"`, `"` + "```" + `"`, `"NaN"`, `"\\ud83d"`,
	} {
		want := `{"n":` + value + `}`
		for _, wrap := range []string{"%", "```json\n%\n```", "<think>{</think>%", "See [1]: % (done)", "[INFO] %"} {
			got, problem := answerOf(t, s, strings.Replace(wrap, "%", want, 1))
			require.Empty(t, problem, value)
			require.Equal(t, want, got)
		}
	}
}
