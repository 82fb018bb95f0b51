package model

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Answers in the wrappings of models and servers that were reported, beyond those of the other tests.
func TestOdd_FindsTheAnswer(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	spread := "{\n  \"title\": \"Call the printer\",\n  \"urgent\": true\n}"
	for name, text := range map[string]string{
		// Thinking.
		"Gemma 4":                          "<|channel>thought\nMaybe " + sketch + "?\n<channel|>" + task,
		"Gemma 4, broken":                  "<|channel>thought\nMaybe {\"title\":\n<channel|>\n" + task,
		"Gemma 4, empty":                   "<|channel>thought\n<channel|>" + task + "<turn|>",
		"Gemma 4, not opened":              "thought\nMaybe {\"title\":\n<channel|>" + task,
		"LongCat":                          "<longcat_think>\n" + sketch + "\n</longcat_think>\n" + task,
		"LongCat, not opened":              "so {\"title\":\n</longcat_think>\n" + task,
		"Hunyuan":                          "<think:opensource>" + sketch + "</think:opensource><answer>" + task + "</answer:opensource>",
		"a namespace":                      "<mm:think>" + sketch + "</mm:think>" + task,
		"a budget within":                  "<seed:think>hm {<seed:cot_budget_reflect>9 tokens</seed:cot_budget_reflect> so</seed:think>" + task,
		"full-width bars":                  "<｜begin▁of▁thinking｜>" + sketch + "<｜end▁of▁thinking｜>" + task,
		"DeepSeek's bars, then the answer": "<think>" + sketch + "</think>" + task + "<｜end▁of▁sentence｜>",
		"deep thinking":                    "<deep_think>" + sketch + "</deep_think>" + task,
		"thinking with a dash":             "<thought-process>{\"title\":</thought-process>" + task,
		"my thoughts":                      "<my_thoughts>" + sketch + "</my_thoughts>" + task,
		"self-reflection":                  "<self_reflection>" + sketch + "</self_reflection>" + task,
		"rationale before":                 "<rationale>" + sketch + "</rationale>\n" + task,
		"an analysis before":               "<analysis>" + sketch + "</analysis>\n" + task,
		"space in the tag":                 "< think >" + sketch + "</ think >" + task,
		"space in the end tag":             "<think>" + sketch + "</think >" + task,
		"a line break in the end tag":      "<think>{\"title\":</think\n>" + task,
		"escaped marks":                    "&lt;think&gt;" + sketch + "&lt;/think&gt;\n" + task,
		"an end in square brackets":        "hm {\"title\":\n[/THINK]" + task,
		"an end of Cohere alone":           "hm {\"title\":<|END_THINKING|>" + task,
		"nested thinking":                  "<think>a <think>b</think> {\"title\": c</think>" + task,
		"thinking about the mark":          "<think>I must close with </think> later " + sketch + "</think>" + task,
		"thinking in bold":                 "**Thinking Process:**\n1. " + sketch + "\n\n**Final Output:**\n" + task,
		"a quoted block of thoughts":       "> Reasoning\n> Maybe " + sketch + "\n>\n> Thought for 3 seconds\n\n" + task,
		"thought for seconds":              "Thought for 12 seconds\n\n" + task,
		"thinking of the final channel":    "<|channel|>final <|constrain|>json<|message|><think>" + sketch + "</think>" + task + "<|return|>",
		"channels with a role":             "<|start|>assistant<|channel|>analysis<|message|>" + sketch + "<|end|><|start|>assistant<|channel|>final<|message|>" + task + "<|return|>",
		"a final channel in words":         "analysis\n" + sketch + "\nfinal\n" + task,
		"thinking fenced":                  "```thinking\n" + sketch + "\n```\n" + task,
		"thinking fenced, broken":          "```think\n{\"title\": maybe\n```\n" + task,
		"thinking, an end of text":         "<think>" + sketch + "</think>\n\n" + task + "<|im_end|>\n<|endoftext|>",
		"two answers, thinking between":    sketch + "<think>No, better:</think>" + task,
		"a mark in a comment":              "<!-- " + sketch + " -->\n" + task,
		"a mark in a comment, broken":      "<!-- {\"title\": -->\n" + task,

		// Fences.
		"a fence of a tool call":         "```tool_call\n" + task + "\n```",
		"a fence of tool code":           "```tool_code\nprint(x)\n```\n```json\n" + task + "\n```",
		"a fence with a brace":           "```{.json}\n" + task + "\n```",
		"a fence with a file":            "```json:task.json\n" + task + "\n```",
		"a fence with numbers":           "```json {1,3}\n" + task + "\n```",
		"a fence of three quotes":        "'''json\n" + task + "\n'''",
		"a fence of double quotes":       "\"\"\"\n" + task + "\n\"\"\"",
		"five tildes":                    "~~~~~json\n" + task + "\n~~~~~",
		"a fence with a comma":           "```json, as asked\n" + task + "\n```",
		"the language on its own line":   "```\njson\n" + task + "\n```",
		"a fence with a dash":            "```\n---\n" + task + "\n```",
		"a fence and trailing spaces":    "```json   \n" + spread + "   \n```   ",
		"a fence not closed, text after": "```json\n" + task + "\n\nLet me know if you need more.",
		"a fence closed twice":           "```json\n" + task + "\n```\n```",
		"a fence opened twice":           "```json\n```json\n" + task + "\n```",
		"a fence within a fence":         "```markdown\n```json\n" + task + "\n```\n```",
		"a diff":                         "```diff\n- " + sketch + "\n+ " + task + "\n```\n```json\n" + task + "\n```",
		"YAML, then JSON":                "```yaml\ntitle: draft\nurgent: false\n```\n```json\n" + task + "\n```",
		"the schema, then the answer":    "```json\n{\"type\":\"object\",\"properties\":{\"title\":{\"type\":\"string\"}}}\n```\n```json\n" + task + "\n```",
		"an example, then the answer":    "For example:\n```json\n" + sketch + "\n```\nYour answer:\n```json\n" + task + "\n```",
		"a template, then the answer":    "```json\n{\"title\": \"<title>\", \"urgent\": <true|false>}\n```\n" + task,
		"a template with dots":           "The form is {\"title\": \"...\", \"urgent\": ...}.\n" + task,
		"a template in capitals":         "{\"title\": TITLE, \"urgent\": BOOLEAN}\n\nFilled in:\n" + task,
		"a template with brackets":       "{\"title\": [title], \"urgent\": [true/false]}\n→ " + task,

		// Tool calls in text, where the parser of the server is off.
		"DeepSeek's call":    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>answer\n```json\n" + task + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
		"Kimi's call":        "<|tool_calls_section_begin|><|tool_call_begin|>functions.answer:0<|tool_call_argument_begin|>" + task + "<|tool_call_end|><|tool_calls_section_end|>",
		"Cohere's action":    "<|START_RESPONSE|>" + task + "<|END_RESPONSE|><|END_OF_TURN_TOKEN|>",
		"Granite's answer":   "<|start_of_role|>assistant<|end_of_role|>" + task + "<|end_of_text|>",
		"Llama's header":     "<|start_header_id|>assistant<|end_header_id|>\n\n" + task + "<|eot_id|>",
		"ChatML":             "<|im_start|>assistant\n" + task + "<|im_end|>",
		"Mistral's mark":     "[/INST] " + task + "</s>",
		"Phi":                "<|assistant|>" + task + "<|end|>",
		"GLM's box":          "<think>hm</think><|begin_of_box|>" + spread + "<|end_of_box|>",
		"an output tag":      "<output>" + task + "</output>",
		"a JSON tag":         "<json>\n" + spread + "\n</json>",
		"a result tag":       "<result format=\"json\">" + task + "</result>",
		"boxed":              "The answer is \\boxed{" + task + "}.",
		"Markdown table":     "| key | value |\n|---|---|\n| a | [b] |\n\n" + task,
		"an HTML entity":     "Tom &amp; Co {a}: " + task,
		"escaped quotes":     "Answer: " + string(quoted(spread)),
		"a Python literal":   "answer = json.loads('{}')\n" + task,
		"a JSONP":            "callback(" + task + ");",
		"an XSSI prefix":     ")]}'\n" + task,
		"a label in bold":    "**Output (JSON):**\n\n" + task,
		"a label of Chinese": "以下是结果：\n" + task,
		"a full stop after":  "Here is the JSON you asked for. " + task + " Hope that helps!",
		"a smiley":           "Sure! :} Here: " + task + " :]",
		"a footnote":         task + "\n\n[1] See the manual.\n[2] {ibid}",
		"sources":            task + "\n\n**Sources:** [1](https://x.test), [2](https://y.test)",
		"Perplexity":         "Based on the results[1][2], the task is: " + task + "[3]",
		"a checklist":        "- [x] title\n- [ ] urgent\n\n" + task,
		"a formula":          "With $x_{i} = {1, 2}$: " + task,
		"a regular one":      "It matches ^[A-Z]{2}-[0-9]{3}$: " + task,
		"a template engine":  "Use {{title}} and {% if x %}: " + task,
		"CSS":                "body { color: red } " + task,
		"a set":              "One of {red, green}: " + task,
		"an interval":        "Within [0, 1) and (2, 3]: " + task,
		"a placeholder":      "[Your name], here you are: " + task,
		"a log":              "2026-01-30 [INFO] {main} done\n" + task,
		"carriage returns":   "Sure:\r" + strings.ReplaceAll(spread, "\n", "\r"),
		"a line separator":   "Sure:\u2028" + task,
		"a soft hyphen":      "\u00ad" + task,
		"zero width joiner":  "\u200d" + task + "\u2060",
		"a null byte":        "\x00" + task,
		"a bell":             task + "\x07",
		"no-break spaces":    strings.ReplaceAll("So:\n"+task, "\n", "\u00a0\n\u00a0"),
		"ideographic space":  "\u3000" + task + "\u3000",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, text)
			require.Empty(t, problem, "%q", text)
			require.JSONEq(t, task, got, "%q", text)
		})
	}
}

// Where the answer is missing, broken or cut, no draft is taken for it.
func TestOdd_TakesNoDraft(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	for name, text := range map[string]string{
		"Gemma 4, no answer":          "<|channel>thought\n" + sketch + "\n<channel|>",
		"Gemma 4, still thinking":     "<|channel>thought\n" + sketch,
		"LongCat, no answer":          "<longcat_think>" + sketch + "</longcat_think>",
		"a namespace, no answer":      "<mm:think>" + sketch + "</mm:think> Done.",
		"space in the tag, no answer": "< think >" + sketch + "</ think >",
		"escaped marks, no answer":    "&lt;think&gt;" + sketch + "&lt;/think&gt;",
		"a comment, no answer":        "<!-- " + sketch + " -->",
		"thinking fenced, no answer":  "```thinking\n" + sketch + "\n```",
		"an answer that is cut":       sketch + "\nNo, better:\n" + task[:20],
		"a fence that is cut":         "```json\n" + sketch + "\n```\nBetter:\n```json\n" + task[:20],
		"a fence cut after its mark":  "```json\n" + sketch + "\n```\nBetter:\n```json\n",
		"a fence cut after a bracket": "```json\n" + sketch + "\n```\nBetter:\n```json\n{",
		"a label and nothing":         "Draft: " + sketch + "\n\nFinal answer:",
		"a broken answer last":        sketch + "\nFinal: {\"title\": \"a\", \"urgent\": yes}",
		"a broken answer in a fence":  sketch + "\n```json\n{\"title\": \"a\", urgent: true,}\n```",
		"a broken answer in a tag":    "<draft>" + sketch + "</draft><answer>{\"title\": \"a\" \"urgent\": true}</answer>",
		"members of a broken one":     "{\"task\": " + sketch + ", \"note\": bad}",
		"an item of a broken list":    "[" + sketch + ", {\"title\": bad}]",
		"single quotes around it":     "{'task': " + sketch + ", 'note': 'x'}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, text)
			require.Empty(t, got, "%q", text)
			require.NotEmpty(t, problem)
		})
	}
}
