package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

// Answers as models write them, in shapes that no other test of this package has.
func TestForeign_FindsTheAnswer(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	spread := "{\n  \"title\": \"Call the printer\",\n  \"urgent\": true\n}"
	for name, text := range map[string]string{
		"thoughts":                           "<thoughts>" + sketch + "</thoughts>" + task,
		"thinking process":                   "<thinking_process>\n" + sketch + "\n</thinking_process>\n" + task,
		"inner monologue":                    "<inner_monologue>{\"title\":</inner_monologue>" + task,
		"internal monologue":                 "<internal_monologue>" + sketch + "</internal_monologue>" + task,
		"chain of thought":                   "<chain_of_thought>" + sketch + "</chain_of_thought>" + task,
		"thinking of Anthropic's prompts":    "<antThinking>" + sketch + "</antThinking>" + task,
		"reasoning content":                  "<reasoning_content>" + sketch + "</reasoning_content>" + task,
		"bars":                               "<|think|>" + sketch + "<|/think|>" + task,
		"bars, longer":                       "<|thinking|>{\"title\":\"<|/thinking|>" + task,
		"Apertus":                            "<|inner_prefix|>" + sketch + "<|inner_suffix|>" + task,
		"MedGemma":                           "<unused94>thought\n" + sketch + "<unused95>" + task,
		"a tag with attributes":              `<think time="3s">` + sketch + "</think>" + task,
		"a tag with attributes, broken":      `<thinking lang="en">{"title":</thinking>` + task,
		"details of a chat program":          `<details type="reasoning" done="true" duration="5">` + "\n<summary>Thought for 5 seconds</summary>\n> " + sketch + "\n</details>\n" + task,
		"details of a page after the answer": task + "\n<details><summary>Why?</summary>It is late.</details>",
		"printed by Ollama":                  "Thinking...\nMaybe " + sketch + "?\n...done thinking.\n\n" + task,
		"printed by Ollama, broken":          "Thinking...\nMaybe {\"title\":\n...done thinking.\n\n" + task,
		"thinking, then an answer tag":       "<think>" + sketch + "</think>\n<answer>\n" + spread + "\n</answer>",
		"thinking, then a response mark":     "<|START_THINKING|>" + sketch + "<|END_THINKING|><|START_RESPONSE|>" + task + "<|END_RESPONSE|>",
		"thinking, then a box":               "<think>" + sketch + "</think><|begin_of_box|>" + task + "<|end_of_box|>",
		"empty thinking":                     "<think>\n\n</think>\n\n" + task,
		"two closings":                       sketch + "</think>" + sketch + "</think>" + task,
		"a mark in bold":                     "**Thinking:** " + sketch + "\n**Answer:** " + task,
		"headings":                           "### Reasoning\n" + sketch + "\n### Answer\n" + task,
		"process and response":               "Here is my thought process: " + sketch + " is a draft.\n\nHere is my response:\n" + task,

		"four backticks":                "````json\n" + task + "\n````",
		"a fence in a list":             "- The task:\n\n  ```json\n  " + task + "\n  ```\n",
		"a fence in a quote":            "> ```json\n> " + task + "\n> ```",
		"a fence with a title":          "```json title=\"task.json\"\n" + task + "\n```",
		"a fence of JSON5":              "```json5\n" + task + "\n```",
		"a fence of JSONC, comment":     "```jsonc\n// the task\n" + task + "\n```",
		"a fence of JavaScript":         "```javascript\n" + task + "\n```",
		"a fence of Python":             "```python\n" + task + "\n```",
		"a fence of a shell":            "```sh\ncurl -d '{}' https://x.test\n```\n```json\n" + task + "\n```",
		"a fence with carriage returns": "```json\r\n" + strings.ReplaceAll(spread, "\n", "\r\n") + "\r\n```\r\n",
		"three fences":                  "```json\n" + sketch + "\n```\n```json\n{\"note\":1}\n```\n```json\n" + task + "\n```",
		"fences, the schema last":       "```json\n" + task + "\n```\nIt satisfies:\n```json\n{\"type\":\"object\",\"required\":[\"title\"]}\n```",
		"a fence that never opened":     task + "\n```",
		"a label and a fence":           "json\n```\n" + task + "\n```",
		"a label alone":                 "json\n" + task,
		"the role first":                "assistant\n\n" + task,
		"a call of a function":          "answer(" + task + ")",
		"a call of a function, Llama":   "<function=answer>" + task + "</function>",
		"an assignment":                 "result = " + task + ";",
		"a return":                      "return " + task,
		"a log line":                    "[INFO] 12:30 done: " + task,
		"a table":                       "| field | value |\n|---|---|\n| title | {x} |\n\n" + task,
		"one brace too many":            task + "}",
		"a bracket too many":            task + "]",
		"a full stop":                   task + ".",
		"a semicolon":                   task + ";",
		"zero width spaces":             "\u200b" + task + "\u200b",
		"a byte order mark in a fence":  "```json\n\ufeff" + task + "\n```",
		"a no-break space before":       "\u00a0" + task,
		"smart quotes around":           "“" + task + "”",
		"full stops of Chinese":         "答案：" + task + "。",
		"an emoji before":               "✅ " + task,
		"an XML declaration":            "<?xml version=\"1.0\"?><json>" + task + "</json>",
		"CDATA":                         "<![CDATA[" + task + "]]>",
		"an end of text":                task + "<|endoftext|>" + "<|eot_id|>",
		"a stop word":                   task + "\n###",
		"said twice":                    task + "\n" + task,
		"said twice, once fenced":       task + "\n```json\n" + spread + "\n```",
		"JSON Lines":                    sketch + "\n" + task + "\n",
		"a wrong one last":              task + "\n{\"title\":7,\"urgent\":true}",
		"many wrong ones":               strings.Repeat("{\"title\":7}\n", 20) + task,
		"an empty object last":          task + "\n{}",
		"null first":                    "null\n" + task,
		"escapes":                       `{"title":"Call the printer","urgent":true}`,
		"escaped slashes":               strings.Replace(task, "printer", `printer`, 1),
		"a number of members":           `{"urgent":true,"title":"Call the printer"}`,
		"JSON text, in prose":           "The answer is: " + string(quoted(task)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, text)
			require.Empty(t, problem, "%q", text)
			require.JSONEq(t, task, got, "%q", text)
		})
	}
}

// What is almost JSON is named with its place, and only repaired if the operator says so. A repair never
// changes what was written well.
func TestForeign_NearJSON(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	for text, repaired := range map[string]string{
		"{\n  // who\n  \"title\": \"a\",\n  \"urgent\": true\n}": `{"title":"a","urgent":true}`,
		"{\"title\": \"a\", # urgent?\n \"urgent\": true}":        "",
		`{"title":"a","urgent":true,,}`:                           "",
		`{"title":"a",,"urgent":true}`:                            "",
		`{'title':'it\'s','urgent':false}`:                        `{"title":"it's","urgent":false}`,
		`{"title":'a',"urgent":true}`:                             `{"title":"a","urgent":true}`,
		`{“title”: “a”, “urgent”: true}`:                          `{"title":"a","urgent":true}`,
		`{title: 'a', urgent: True}`:                              `{"title":"a","urgent":true}`,
		`{"title":"a","urgent":TRUE}`:                             "",
		`{"title":"a" "urgent":true}`:                             `{"title":"a","urgent":true}`,
		"{\"title\":\"a\"\n\"urgent\":true}":                      `{"title":"a","urgent":true}`,
		"{\"title\":\"tab\there\",\"urgent\":true}":               `{"title":"tab\there","urgent":true}`,
		`{\"title\":\"a\",\"urgent\":true}`:                       `{"title":"a","urgent":true}`,
		"{\u00a0\"title\":\u00a0\"a\",\"urgent\":true}":           `{"title":"a","urgent":true}`,
		`{"title":"C:\dir","urgent":true}`:                        "",
		`{"title":"a","urgent":true`:                              "",
		`{"title":"a","urgent":tr`:                                "",
		`{"title":"a"`:                                            "",
		`{"title":"a","urgent":true,"parts":[...]}`:               "",
		`{"title":"a","urgent":true,"parts":[{"title":"b","urg`:   "",
		"```json\n{\"title\":\"a\",\"urgent\":true,}\n```":        `{"title":"a","urgent":true}`,
		"Here you are:\n{\"title\":\"a\",\"urgent\":true,}":       `{"title":"a","urgent":true}`,
		"<think>{</think>{\"title\":\"a\",\"urgent\":true,}":      `{"title":"a","urgent":true}`,
	} {
		x := extract(text)
		require.Empty(t, x.documents, text)
		_, problem := answerOf(t, s, text)
		require.Regexp(t, `^its JSON (is broken at byte \d+: |has a trailing comma at byte \d+$)`, problem, text)
		d, ok := x.repair(text)
		if repaired == "" {
			if ok { // whatever it is, it is not taken for an answer with other data
				require.NotContains(t, string(d.raw), "NaN", text)
			}
			continue
		}
		require.True(t, ok, text)
		require.JSONEq(t, repaired, string(d.raw), text)
	}
}

// A value that JSON does not have is no value, with and without a repair.
func TestForeign_NoNumber(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("kind", []byte(`{"type":"object","required":["n"],"additionalProperties":false,"properties":{"n":{}}}`))
	require.NoError(t, err)
	for _, word := range []string{"NaN", "Infinity", "-Infinity", "undefined", "+1", "0x1F", ".5", "1.", "01", "1_000", "1e", "inf"} {
		for _, text := range []string{`{"n":` + word + `}`, "```json\n{\"n\": " + word + "}\n```", "So: {\"n\":" + word + "}"} {
			got, problem := answerOf(t, s, text)
			require.Empty(t, got, text)
			require.Contains(t, problem, "its JSON is broken at byte", text)
		}
	}
}

// Every answer, in every wrapping, after every thought, with every tail: the answer or an honest failure.
func TestForeign_Generated(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	s := taskSchema(t)
	answers := []string{
		task,
		`{"title":"","urgent":false}`,
		`{"title":"a {b} [c] </think> \"d\" ` + "```" + `","urgent":true,"parts":[{"title":"x","urgent":false,"parts":[]}]}`,
		"{\r\n\t\"urgent\" : false ,\r\n\t\"title\" : \"\\u00e9\\ud83d\\ude00 😀\"\r\n}",
	}
	var thoughts []string
	marks := slices.Clone(thinkingMarks)
	for _, name := range []string{
		"think", "thinking", "thought", "reasoning", "reflection", "seed:think", "scratchpad", "thought_process", "thoughts",
		"thinking-process", "inner_monologue", "chain_of_thought", "antThinking", "longcat_think",
	} {
		marks = append(marks, mark{text: "<" + name + ">", ends: "</" + name + ">"})
	}
	for _, m := range marks {
		if m.paired {
			continue // the end mark alone is none
		}
		for _, inside := range []string{"hm", sketch, `{"title":`, "[[[", "```json\n" + sketch + "\n```", "a < b > c"} {
			thoughts = append(thoughts, m.text+inside+m.ends, inside+m.ends, strings.ToUpper(m.text)+inside+strings.ToUpper(m.ends))
		}
	}
	thoughts = append(thoughts, "", "Sure!\n", "[1] says {x}.\n")
	wraps := []string{"%s", "```json\n%s\n```", "```\n%s\n```", "Answer: %s", "<answer>%s</answer>", "1. %s", "> %s", "**%s**"}
	tails := []string{"", "\n", " Done.", "<|im_end|>", "\nLet me know {if} more is needed [1]."}
	tried := 0
	for _, answer := range answers {
		for _, thought := range thoughts {
			for range 3 { // all wrappings and tails occur with all answers and thoughts in turn
				wrap, tail := wraps[tried%len(wraps)], tails[tried%len(tails)]
				text := thought + "\n" + fmt.Sprintf(wrap, answer) + tail
				got, problem := answerOf(t, s, text)
				require.Empty(t, problem, "%q", text)
				require.JSONEq(t, answer, got, "%q", text)
				tried++
			}
			for _, cut := range []int{1, len(answer) / 2, len(answer) - 1} {
				got, _ := answerOf(t, s, thought+"\n"+answer[:cut])
				require.Empty(t, got, "%q", thought+"\n"+answer[:cut])
			}
		}
	}
	require.Greater(t, tried, 4_000)
}

// An answer that is wanted as a list, a number or a text is found in the same ways.
func TestForeign_OtherRoots(t *testing.T) {
	t.Parallel()
	for source, texts := range map[string]map[string]string{
		`{"type":"array","minItems":1,"items":{"type":"object","required":["n"],"additionalProperties":false,"properties":{"n":{"type":"integer"}}}}`: {
			`[{"n":1},{"n":2}]`:                              `[{"n":1},{"n":2}]`,
			`{"value":[{"n":1}]}`:                            `[{"n":1}]`,
			"```json\n[\n {\"n\":1}\n]\n```":                 "[\n {\"n\":1}\n]",
			"<think>[{\"n\":9}]</think>[{\"n\":1}]":          `[{"n":1}]`,
			"<think time=1>[{\"n\":9}]</think>\n[{\"n\":1}]": `[{"n":1}]`,
			"[{\"n\":1},]":                                   "",
			"[{\"n\":1} {\"n\":2}]":                          "",
			"[{\"n\":1},{\"n\":":                             "",
		},
		`{"type":"string","enum":["yes","no"]}`: {
			`"yes"`:                             `"yes"`,
			`{"value":"yes"}`:                   `"yes"`,
			"```json\n{\"value\": \"no\"}\n```": `"no"`,
			`{"value":"maybe"}`:                 "",
			`{"value":"yes","note":1}`:          "",
			"```json\n\"no\"\n```":              `"no"`,
			"<think>\"no\"</think>":             "",
			"<think>\"no\"</think>\n\"yes\"":    `"yes"`,
		},
		`{"type":"integer"}`: {
			"42":                       "42",
			`{"value":42}`:             "42",
			" 42\n":                    "42",
			"```\n42\n```":             "42",
			"\ufeff42":                 "42",
			"42.5":                     "",
			"It is 42.":                "",
			"1. 42":                    "",
			"<think>1</think>42":       "42",
			"hm {\n</think>\n\n42\n":   "42",
			"<think>1</think>It is 42": "",
			"<|channel|>analysis<|message|>1<|end|><|start|>assistant<|channel|>final<|message|>42<|return|>": "42",
			"Thinking...\n1\n...done thinking.\n\n42":                                                         "42",
		},
	} {
		s, err := schema.Compile("kind", []byte(source))
		require.NoError(t, err)
		for text, want := range texts {
			got, problem := answerOf(t, s, text)
			if want == "" {
				require.Empty(t, got, "%s: %q", source, text)
				require.NotEmpty(t, problem, "%s: %q", source, text)
				continue
			}
			require.JSONEq(t, want, got, "%s: %q: %s", source, text, problem)
			require.True(t, json.Valid([]byte(got)))
		}
	}
}
