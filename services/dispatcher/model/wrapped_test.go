package model

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

// What models put around an answer is taken off, if what is within satisfies the schema and the whole does not.
func TestWrapped_FindsTheAnswer(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	spread := "{\n  \"title\": \"Call the printer\",\n  \"urgent\": true\n}"
	text := func(doc string) string { return string(quoted(doc)) }
	for name, answer := range map[string]string{
		"a list of one":                "[" + task + "]",
		"a list of one, spread":        "[\n  " + spread + "\n]",
		"a list of one in a fence":     "```json\n[" + task + "]\n```",
		"a list of one after prose":    "Here are the tasks:\n[" + task + "]",
		"a list of one as text":        text("[" + task + "]"),
		"a list of a list":             "[[" + task + "]]",
		"a list of one text":           "[" + text(task) + "]",
		"the tool of a gateway":        `{"json_tool_call":` + task + `}`,
		"parameters":                   `{"parameters":` + task + `}`,
		"arguments":                    `{"arguments":` + task + `}`,
		"a result":                     `{"result":` + task + `}`,
		"an answer":                    `{"Answer":` + task + `}`,
		"a final answer":               `{"final_answer":` + task + `}`,
		"a response":                   `{"response":` + task + `}`,
		"output in a fence":            "```json\n{\"output\": " + task + "}\n```",
		"data after prose":             "The data: " + `{"data":` + task + `}`,
		"the name of a language":       `{"json":` + task + `}`,
		"the properties of a schema":   `{"properties":` + task + `}`,
		"a schema that is filled in":   `{"type":"object","properties":` + task + `}`,
		"a schema with its keywords":   `{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"Task","properties":` + task + `,"required":["title","urgent"]}`,
		"a call of the answer":         `{"name":"answer","arguments":` + task + `}`,
		"a call of a function":         `{"type":"function","name":"functions.answer","parameters":` + task + `}`,
		"a call with an id":            `{"id":"call_1","type":"tool_use","name":"answer","input":` + task + `}`,
		"a call in tags":               `<tool_call>{"name":"answer","arguments":` + task + `}</tool_call>`,
		"arguments as text":            `{"name":"answer","arguments":` + text(task) + `}`,
		"an action":                    "```json\n{\"action\": \"Final Answer\", \"action_input\": " + task + "}\n```",
		"an action as text":            "```\n{\"action\": \"Final Answer\", \"action_input\": " + text(task) + "}\n```",
		"a wrapper as text":            `{"result":` + text(task) + `}`,
		"a value as text":              `{"value":` + text(task) + `}`,
		"a fence in a text":            text("```json\n" + task + "\n```"),
		"a fence in a wrapper":         `{"output":` + text("```json\n"+task+"\n```") + `}`,
		"a wrapper in a list":          `[{"output":` + task + `}]`,
		"two wrappers":                 `{"response":{"output":` + task + `}}`,
		"thinking next to it":          `{"reasoning":"hm","answer":` + task + `}`,
		"a part of content":            `[{"type":"text","text":` + text(task) + `}]`,
		"a message":                    `{"role":"assistant","content":` + text(task) + `}`,
		"a wrapped draft, then a task": `{"result":` + sketch + "}\n" + `{"result":` + task + `}`,
		"a draft, then a wrapped task": sketch + "\n" + `{"result":` + task + `}`,
		"an unnecessary null":          `{"result":{"title":"Call the printer","urgent":true,"parts":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, answer)
			require.Empty(t, problem, "%q", answer)
			require.JSONEq(t, task, strings.Replace(got, `,"parts":null`, "", 1), "%q", answer)
		})
	}
}

// A member that is to be an object or a list is also read as JSON text.
func TestWrapped_ReadsMembersThatAreText(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	for answer, want := range map[string]string{
		`{"title":"a","urgent":true,"parts":"[]"}`:                                                          `{"title":"a","urgent":true,"parts":[]}`,
		`{"title":"a","urgent":true,"parts":"[{\"title\":\"b\",\"urgent\":false}]"}`:                        `{"title":"a","urgent":true,"parts":[{"title":"b","urgent":false}]}`,
		`{"title":"[a]","urgent":true,"parts":["{\"title\":\"{b}\",\"urgent\":false}"]}`:                    `{"title":"[a]","urgent":true,"parts":[{"title":"{b}","urgent":false}]}`,
		`{"result":{"title":"a","urgent":true,"parts":"\n[]\n"}}`:                                           `{"title":"a","urgent":true,"parts":[]}`,
		"```json\n" + `{"title":"1.10","urgent":true,"parts":"` + "```json\\n[]\\n```" + `"}` + "\n```":     `{"title":"1.10","urgent":true,"parts":[]}`,
		`{"title":"a","urgent":true,"parts":[{"title":"b","urgent":false,"parts":"[]"}]} That is all, [1].`: `{"title":"a","urgent":true,"parts":[{"title":"b","urgent":false,"parts":[]}]}`,
	} {
		got, problem := answerOf(t, s, answer)
		require.Empty(t, problem, answer)
		require.Equal(t, want, got, answer)
	}
	for _, answer := range []string{
		`{"title":"a","urgent":"true"}`, `{"title":"a","urgent":true,"parts":"[1"}`, `{"title":"a","urgent":true,"parts":"[1]"}`,
		`{"title":["a"],"urgent":true}`, `{"title":"a","urgent":true,"parts":"none"}`,
	} {
		got, problem := answerOf(t, s, answer)
		require.Empty(t, got, answer)
		require.NotEmpty(t, problem)
	}
}

// A schema that a model repeats, also in part, is no answer, whatever the values may be.
func TestWrapped_TakesNoSchema(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("kind", []byte(`{"type":"object","additionalProperties":false,"required":["n"],"properties":{"n":{},"m":{}}}`))
	require.NoError(t, err)
	for _, answer := range []string{
		`{"type":"object","properties":{"n":{}}}`, `{"properties":{"n":{"type":"string"}}}`, `{"properties":{"n":{"description":"x"},"m":1}}`,
		`{"type":"object","required":["n"],"properties":{"n":{"anyOf":[{"type":"null"}]}}}`, `{"properties":{}}`, `{"properties":{"n":1},"examples":[1]}`,
	} {
		got, problem := answerOf(t, s, answer)
		require.Empty(t, got, answer)
		require.NotEmpty(t, problem)
	}
	got, problem := answerOf(t, s, `{"properties":{"n":{"v":1}}}`)
	require.Empty(t, problem)
	require.JSONEq(t, `{"n":{"v":1}}`, got)
}

// What is wrapped as something else is no answer.
func TestWrapped_TakesNothingElse(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	for name, answer := range map[string]string{
		"a list of two":              "[" + sketch + "," + task + "]",
		"a list, cut":                "[" + sketch + ",{\"title\":",
		"a call of another tool":     `{"name":"search","arguments":` + sketch + `}`,
		"a call of it in tags":       `<tool_call>{"name":"search","arguments":` + sketch + `}</tool_call>`,
		"an example":                 `{"example":` + sketch + `}`,
		"a draft":                    `{"draft":` + sketch + `}`,
		"an error with data":         `{"error":"no","data":` + sketch + `}`,
		"two values":                 `{"data":` + sketch + `,"result":` + task + `}`,
		"a value with a remark":      `{"data":` + sketch + `,"done":false}`,
		"the input":                  `{"input":` + sketch + `}`,
		"what the user says":         `{"role":"user","content":` + sketch + `}`,
		"the result of a tool":       `{"type":"tool_result","content":` + sketch + `}`,
		"a wrapper, cut":             `{"result":` + sketch,
		"a wrapper, cut in a fence":  "```json\n{\"result\":" + sketch + "\n```",
		"five wrappers":              `{"data":{"data":{"data":{"data":{"data":` + sketch + `}}}}}`,
		"a list of one that is none": `[{"title":"draft"}]`,
	} {
		got, problem := answerOf(t, s, answer)
		require.Empty(t, got, name)
		require.NotEmpty(t, problem, name)
	}
}

// A member that the schema has is no wrapper: an answer without another member that it must have is
// incomplete, although the value of the member satisfies the schema, too.
func TestWrapped_KeepsMembersOfTheSchema(t *testing.T) {
	t.Parallel()
	for source, answer := range map[string]string{
		`{"type":"object","properties":{"status":{"type":"string"},"data":{"type":"object"}},"required":["status"]}`:                                  `{"data":{"status":"active","id":7}}`,
		`{"anyOf":[{"type":"string"},{"type":"object","properties":{"text":{"type":"string"},"lang":{"type":"string"}},"required":["text","lang"]}]}`: `{"text":"bonjour"}`,
		`{"type":"object","properties":{"name":{"type":"string"},"properties":{"type":"object"}},"required":["name"]}`:                                `{"properties":{"name":"x"}}`,
		`{"type":"object","properties":{"id":{"type":"string"},"result":{"$ref":"#"}},"required":["id"]}`:                                             `{"result":{"id":"x"}}`,
		`{"type":"object","properties":{"Final_Answer":{"type":"object"},"n":{"type":"number"}},"required":["n"]}`:                                    `{"finalAnswer":{"n":1}}`,
		`{"type":"string"}`: `The words are ["one"] and so on.`,
	} {
		s, err := schema.Compile("s", []byte(source))
		require.NoError(t, err)
		got, problem := answerOf(t, s, answer)
		require.Empty(t, got, answer)
		require.NotEmpty(t, problem)
	}
}

// Other languages, notations and remarks around an answer.
func TestReports_FindTheAnswerAmidOtherText(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	for name, answer := range map[string]string{
		"a tag of thinking around nothing":   "<think />\n" + task,
		"thinking in Chinese tags":           "<思考>" + sketch + "</思考>" + task,
		"headings in Chinese":                "【思考】" + sketch + "\n【答案】" + task,
		"a label in Chinese":                 "答案：" + task,
		"Japanese":                           "以下の通りです。\n\n```json\n" + task + "\n```\nご確認ください。",
		"Korean":                             "결과: " + task + " 입니다.",
		"Arabic":                             "الجواب: " + task,
		"marks of direction":                 "\u200f" + task + "\u200f",
		"Russian":                            "Вот ответ {JSON}: " + task + ". Готово!",
		"German quotes":                      "„" + task + "“",
		"guillemets":                         "«" + task + "»",
		"corner brackets":                    "「" + task + "」",
		"a full stop in Chinese":             task + "。",
		"wide parentheses":                   "（" + task + "）",
		"an answer of Exaone":                "<thought>\n" + sketch + "\n</thought>\n" + task + "[|endofturn|]",
		"tags in bold":                       "**<think>** " + sketch + " **</think>** " + task,
		"tags as code":                       "`<think>` " + sketch + " `</think>` " + task,
		"headings":                           "### Thought\n" + sketch + "\n\n### Answer\n" + task,
		"reflection after the answer":        task + "\n<reflection>I could have said " + sketch + "</reflection>",
		"thinking after the answer":          task + "\n<think>Was " + sketch + " better? No.</think>",
		"a tag that opens last":              task + "\n<think>",
		"a remark about a tag":               task + "\nI left out the `<notes>` element, and `<think>` is no part of it.",
		"a remark about thinking":            task + " There is no <think> here.",
		"an element of HTML":                 "The form needs an <input type=\"email\"> field:\n" + task,
		"a mark of an instruction":           "The template begins with [INST] and has [TOOL_RESULTS]:\n" + task,
		"a result of a tool, then an answer": "<tool_response>" + sketch + "</tool_response>\n" + task,
		"an input, then an answer":           "<input>" + sketch + "</input>\nOutput: " + task,
		"an answer named example":            "<example>" + task + "</example>",
		"an answer with a lost slash":        "<answer>" + task + "<answer>",
		"a turn of the user before":          "<|im_start|>user\n" + sketch + "<|im_end|>\n<|im_start|>assistant\n" + task,
		"a turn of the user after":           task + "<|im_end|>\n<|im_start|>user\nAnd " + sketch + "?",
		"a commented draft":                  "// " + sketch + "\n" + task,
		"a commented draft, another mark":    "/* " + sketch + " */\n" + task,
		"a display of a formula":             "\\[ \\boxed{" + task + "} \\]",
		"a declaration":                      "const task = " + task + ";",
		"an export":                          "export default " + task + ";",
		"a call":                             "JSON.parse('" + task + "')",
		"a type before":                      "type Task = { title: string; urgent: boolean };\n\n" + task,
		"a class before":                     "class Task(BaseModel):\n    title: str = Field(examples=[\"x\"])\n\n" + task,
		"a template before":                  "{\n  \"title\": string, // the title\n  \"urgent\": boolean\n}\n\n" + task,
		"a dictionary before":                "{'title': 'draft', 'urgent': False}\nIn JSON:\n" + task,
		"curved quotes before":               "{“title”: “draft”}\nIn JSON: " + task,
		"marks of a turn after":              task + "\n\nHuman: and {this}?",
		"an observation after":               "Thought: done\nFinal Answer: " + task + "\nObservation: {}",
		"an action":                          "Thought: I need {it}\nAction: Final Answer\nAction Input: " + task,
		"an open fence at the end":           "Thought: I now can give a great answer\nFinal Answer: " + task + "\n```",
		"a record separator":                 "\x1e" + task + "\n",
		"a document of XML":                  "<?xml version=\"1.0\"?><answer>" + task + "</answer>",
		"character data":                     "<answer><![CDATA[" + task + "]]></answer>",
		"a progress bar":                     "100%|██████████| 1/1 [00:01<00:00]\n" + task,
		"a wiki link":                        "[[Printer]] " + task,
		"a pattern of files":                 "src/{a,b}/[x].ts\n" + task,
		"a diagram":                          "```mermaid\ngraph TD; A[x]-->B{y}\n```\n" + task,
		"types after":                        task + "\n\nTypes: {\"title\": \"string\", \"urgent\": \"boolean\"}",
		"an explanation after":               task + "\n\nHere `title` is [string] and {urgent} a boolean: {\"title\": \"...\"}",
		"a question after":                   task + "\n\nWould you like {\"parts\": [...]} as well?",
		"the usage after":                    task + "\n{\"usage\":{\"tokens\":12}}",
		"wide backticks":                     "｀｀｀json\n" + task + "\n｀｀｀",
		"escaped backticks":                  "\\`\\`\\`json\n" + task + "\n\\`\\`\\`",
		"a mark in a fence":                  "```json\n\ufeff" + task + "\n```",
		"brackets left over":                 task + "\n}\n```",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, answer)
			require.Empty(t, problem, "%q", answer)
			require.JSONEq(t, task, got, "%q", answer)
		})
	}
}

// A draft is not the answer if the text ends before the announced answer, or has only turns of a user or a
// tool. The model gets the reason.
func TestReports_TakeNoDraftOfAnUnfinishedAnswer(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	const announced, thought = "it ends where its answer was to begin", "it ends after its thinking, without an answer"
	for name, tc := range map[string]struct{ answer, says string }{
		"a label in Chinese":       {"草稿：" + sketch + "\n最终答案：", announced},
		"a label in Spanish":       {"Borrador: " + sketch + "\n**Respuesta final:**", announced},
		"a heading":                {"### Draft\n" + sketch + "\n### Final Answer\n", announced},
		"a heading in German":      {"## Entwurf\n" + sketch + "\n## Antwort", announced},
		"a block of commented":     {sketch + "\nFinal:\n```jsonc\n", announced},
		"a block after a label":    {sketch + "\nFinal:\n```\n", announced},
		"a tag":                    {sketch + "\nFinal:\n<answer>", announced},
		"a tag of output":          {"<plan>" + sketch + "</plan>\n" + sketch + "\n<output>\n", announced},
		"second thoughts":          {sketch + "\n<think>no, that is wrong, better", thought},
		"second thoughts, cut":     {sketch + "\n<think>wrong</think>\n{\"ti", "broken"},
		"thinking in Chinese tags": {"<思考>" + sketch + "</思考>", thought},
		"a result of a tool":       {"<tool_response>" + sketch + "</tool_response>\nI need more.", thought},
		"an input":                 {"<input>" + sketch + "</input>\nI cannot.", thought},
		"an example":               {"<example>" + sketch + "</example>\nI cannot.", thought},
		"a turn of the user":       {"<|im_start|>user\n" + sketch + "<|im_end|>\n<|im_start|>assistant\nI cannot.", thought},
		"a turn of a tool":         {"<|start_header_id|>ipython<|end_header_id|>\n" + sketch + "<|eot_id|>no", thought},
		"results of Mistral":       {"[TOOL_RESULTS]" + sketch + "[/TOOL_RESULTS] no", thought},
		"an instruction":           {"[INST] " + sketch + " [/INST] no", thought},
		"a comment":                {"// " + sketch + "\nnone", "it is text"},
		"another comment":          {"# " + sketch + "\nnone", "it is text"},
		"escaped line ends":        {`{\n  "title": "Call the printer",\n  "urgent": true\n}`, "its JSON is broken at byte 1"},
		"escaped line ends, list":  {`[\n  {\n "title": "Call"}]`, "its JSON is broken at byte"},
		"cut within an escape":     {sketch + "\n{\"title\":\"\\u00", "its JSON is broken at byte 43"},
		"cut within a word":        {sketch + "\n{\"title\":\"a\",\"urgent\":tr", "want the word true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, tc.answer)
			require.Empty(t, got, "%q", tc.answer)
			require.Contains(t, problem, tc.says, "%q", tc.answer)
		})
	}
}

// Wrapped in any of these, prefixed, repeated and cut at each byte, an answer is found whole or not at all.
func TestWrapped_NeverGivesWrongData(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	text := func(doc string) string { return string(quoted(doc)) }
	answer := `{"parts":[{"title":"b","urgent":false}],"title":"a } \" ]","urgent":true}`
	wrappers := map[string]string{
		"a list": "[" + answer + "]", "a member": `{"result":` + answer + `}`, "a call": `{"name":"answer","arguments":` + answer + `}`,
		"a text": text(answer), "a call with text": `{"name":"answer","arguments":` + text(answer) + `}`, "a member with text": `{"result":` + text(answer) + `}`,
		"two": `[{"output":` + answer + `}]`, "tags": `<tool_call>{"name":"answer","arguments":` + answer + `}</tool_call>`,
	}
	for name, doc := range wrappers {
		for _, head := range []string{"", "Sure: ", "```json\n", "<think>" + sketch + "</think>", sketch + "\nCorrected:\n", "{\"note\":1}\n"} {
			for _, tail := range []string{"", "\n```", "\n" + doc, "\nThat is all [1]."} {
				if strings.HasPrefix(doc, `"`) && (head != "" || tail != "") { // a text alone is a document only as the whole
					continue
				}
				got, problem := answerOf(t, s, head+doc+tail)
				require.Empty(t, problem, "%s: %q", name, head+doc+tail)
				require.JSONEq(t, answer, got, name)
			}
			for cut := strings.IndexByte(doc, '"') + 2; cut < len(doc); cut++ {
				got, _ := answerOf(t, s, head+doc[:cut])
				if got != "" {
					require.JSONEq(t, answer, got, "%s: %q", name, head+doc[:cut])
				}
			}
		}
	}
}

// The work on a hostile answer does not grow with its depth times its size.
func TestWrapped_IsBoundedForHostileAnswers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	s := taskSchema(t)
	const depth, blanks = 2_000, 1 << 17
	began := time.Now()
	for begins, ends := range map[string]string{`{"a":`: "}", `{"parts":[`: "]}", "[": "]", `{"result":`: "}", `{"parts":["[]",`: "]}"} {
		answer := strings.Repeat(begins, depth) + `"[` + strings.Repeat(" ", blanks) + `]"` + strings.Repeat(ends, depth)
		require.True(t, json.Valid([]byte(answer)), begins)
		got, problem := answerOf(t, s, answer)
		require.Empty(t, got, begins)
		require.NotEmpty(t, problem, begins)
	}
	require.Less(t, time.Since(began), time.Minute)
}
