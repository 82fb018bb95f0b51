package markup_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/markup"
)

const (
	schema = `{"type":"object","properties":{"title":{"type":"string"},"urgent":{"type":"boolean"},"hours":{"type":["number","null"]},
		"note":{"anyOf":[{"type":"string"},{"type":"null"}]},"tags":{"type":"array"},"place":{"$ref":"#/$defs/place"}},"$defs":{"place":{"type":"string"}}}`
	task = `{"title":"Call the printer","urgent":true}`
)

// The notations of calls that models write, by the templates that ask for them.
func TestArguments_OfEachNotation(t *testing.T) {
	t.Parallel()
	call := `{"name":"answer","arguments":` + task + `}`
	for name, tc := range map[string]struct{ text, want string }{
		// JSON with a name and arguments.
		"Hermes":                       {"<tool_call>\n" + call + "\n</tool_call>", task},
		"Hermes, not closed":           {"<tool_call>\n" + call, task},
		"Hermes, prose before":         {"I will answer.\n<tool_call>" + call + "</tool_call>", task},
		"Hermes, arguments first":      {`<tool_call>{"arguments":` + task + `,"name":"answer"}</tool_call>`, task},
		"Hermes, arguments as text":    {`<tool_call>{"name":"answer","arguments":"{\"title\":\"Call the printer\",\"urgent\":true}"}</tool_call>`, task},
		"Qwen, thinking before":        {"<think>\nMaybe answer(title=\"x\")?\n</think>\n<tool_call>" + call + "</tool_call>", task},
		"OpenAI, the old form":         {`{"content":null,"function_call":{"name":"answer","arguments":` + task + `}}`, task},
		"a list alone":                 {`[{"name":"search","arguments":{"q":1}},` + call + `]`, task},
		"a list before another":        {`[` + call + `,{"name":"search","arguments":{"q":1}}]`, task},
		"a document before":            {`{"plan":[1]} <tool_call>` + call + "</tool_call>", task},
		"a draft in the thinking":      {"<think><tool_call>{\"name\":\"answer\",\"arguments\":{}}</tool_call></think><tool_call>" + call + "</tool_call>", task},
		"Llama, JSON":                  {`{"name": "answer", "parameters": ` + task + `}`, task},
		"Llama, a type":                {`{"type": "function", "name": "answer", "parameters": ` + task + `}`, task},
		"Llama, a function":            {`{"type":"function","function":{"name":"answer","parameters":` + task + `}}`, task},
		"Llama, python tag":            {`<|python_tag|>{"name": "answer", "parameters": ` + task + `}<|eom_id|>`, task},
		"Mistral, a list":              {`[TOOL_CALLS][{"name": "answer", "arguments": ` + task + `}]`, task},
		"Mistral, a list with an id":   {`[TOOL_CALLS] [{"name": "answer", "arguments": ` + task + `, "id": "VvvODy9mT"}]</s>`, task},
		"Granite":                      {`<|tool_call|>[{"name":"answer","arguments":` + task + `}]`, task},
		"Granite, 4":                   {"<tool_call>[" + call + "]</tool_call>", task},
		"Phi":                          {`<|tool_call|>[{"type":"function","function":{"name":"answer","arguments":` + task + `}}]<|/tool_call|>`, task},
		"functools":                    {`functools[{"name": "answer", "arguments": ` + task + `}]`, task},
		"Jamba":                        {"<tool_calls>[\n" + call + "\n]</tool_calls>", task},
		"Nemotron":                     {"<TOOLCALL>[" + call + "]</TOOLCALL>", task},
		"InternLM":                     {"<|action_start|><|plugin|>" + `{"name":"answer","parameters":` + task + "}<|action_end|>", task},
		"Command":                      {"Action: ```json\n[{\"tool_name\": \"answer\", \"parameters\": " + task + "}]\n```", task},
		"Command, marks":               {`<|START_ACTION|>[{"tool_call_id":"0","tool_name":"answer","parameters":` + task + `}]<|END_ACTION|>`, task},
		"OpenAI, as text":              {`{"tool_calls":[{"id":"call_1","type":"function","function":{"name":"answer","arguments":"{\"title\":\"Call the printer\",\"urgent\":true}"}}]}`, task},
		"OpenAI, parallel":             {`{"tool_uses":[{"recipient_name":"functions.answer","parameters":` + task + `}]}`, task},
		"LangChain":                    {"```json\n{\"action\": \"answer\", \"action_input\": " + task + "}\n```", task},
		"a fence":                      {"```tool_call\n" + call + "\n```", task},
		"no arguments":                 {`<tool_call>{"name":"answer","arguments":{}}</tool_call>`, `{}`},
		"null arguments":               {`<tool_call>{"name":"answer","arguments":null}</tool_call>`, `{}`},
		"two calls, the last":          {`<tool_call>{"name":"answer","arguments":{"title":"x"}}</tool_call><tool_call>` + call + "</tool_call>", task},
		"another tool before":          {`<tool_call>{"name":"search","arguments":{"q":1}}</tool_call><tool_call>` + call + "</tool_call>", task},
		"another tool after":           {"<tool_call>" + call + `</tool_call><tool_call>{"name":"search","arguments":{"q":1}}</tool_call>`, task},
		"a brace in prose":             {"{so}: " + call, task},
		"escaped brackets in the text": {`<tool_call>{"name":"answer","arguments":{"title":"a } b { c","urgent":true}}</tool_call>`, `{"title":"a } b { c","urgent":true}`},

		// A name before JSON.
		"Mistral, arguments":     {"[TOOL_CALLS]answer[ARGS]" + task, task},
		"Mistral, a call id":     {"[TOOL_CALLS]answer[CALL_ID]abc123def[ARGS]" + task + "</s>", task},
		"Mistral, no mark":       {"[TOOL_CALLS]answer" + task, task},
		"Mistral, thinking":      {"[THINK]hm {[/THINK][TOOL_CALLS]answer[ARGS]" + task, task},
		"Llama, function":        {"<function=answer>" + task + "</function>", task},
		"Llama, not closed":      {"<function=answer>" + task, task},
		"Llama, a name":          {`<function name="answer">` + task + "</function>", task},
		"Llama, called":          {"<|python_tag|>answer.call(" + task + ")", task},
		"DeepSeek V3":            {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>answer\n```json\n" + task + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", task},
		"DeepSeek V3.1":          {"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>answer<｜tool▁sep｜>" + task + "<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>", task},
		"Kimi":                   {"<|tool_calls_section_begin|><|tool_call_begin|>functions.answer:0<|tool_call_argument_begin|>" + task + "<|tool_call_end|><|tool_calls_section_end|>", task},
		"gpt-oss":                {"<|channel|>commentary to=functions.answer <|constrain|>json<|message|>" + task + "<|call|>", task},
		"gpt-oss, the role last": {"<|start|>assistant to=functions.answer<|channel|>commentary json<|message|>" + task, task},
		"Functionary":            {"<|from|>assistant\n<|recipient|>answer\n<|content|>" + task, task},
		"Functionary, arrows":    {">>>answer\n" + task, task},
		"ReAct":                  {"Thought: I know it.\nAction: answer\nAction Input: " + task, task},

		// Tags for each parameter.
		"Qwen Coder":               {"<tool_call>\n<function=answer>\n<parameter=title>\nCall the printer\n</parameter>\n<parameter=urgent>\ntrue\n</parameter>\n</function>\n</tool_call>", task},
		"Qwen Coder, no tool_call": {"<function=answer>\n<parameter=title>\nCall the printer\n</parameter>\n<parameter=urgent>\nTrue\n</parameter>\n</function>", task},
		"Seed":                     {"<seed:tool_call><function=answer><parameter=title>Call the printer</parameter><parameter=urgent>true</parameter></function></seed:tool_call>", task},
		"MiniMax":                  {"<minimax:tool_call>\n<invoke name=\"answer\">\n<parameter name=\"title\">Call the printer</parameter>\n<parameter name=\"urgent\">true</parameter>\n</invoke>\n</minimax:tool_call>", task},
		"Claude":                   {"<function_calls>\n<invoke name=\"answer\">\n<parameter name=\"title\">Call the printer</parameter>\n<parameter name=\"urgent\">true</parameter>\n</invoke>\n</function_calls>", task},
		"DeepSeek V3.2":            {"<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"answer\">\n<｜DSML｜parameter name=\"title\" string=\"true\">Call the printer</｜DSML｜parameter>\n<｜DSML｜parameter name=\"urgent\" string=\"false\">true</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>", task},
		"GLM":                      {"<tool_call>answer\n<arg_key>title</arg_key>\n<arg_value>Call the printer</arg_value>\n<arg_key>urgent</arg_key>\n<arg_value>true</arg_value>\n</tool_call>", task},
		"no parameters":            {"<function=answer>\n</function>", `{}`},
		"several lines":            {"<function=answer><parameter=title>\n one\ntwo \n</parameter></function>", `{"title":" one\ntwo "}`},
		"a number as text":         {"<function=answer><parameter=title>42</parameter><parameter=hours>42</parameter></function>", `{"title":"42","hours":42}`},
		"null":                     {"<function=answer><parameter=title>null</parameter><parameter=hours>None</parameter><parameter=note>null</parameter></function>", `{"title":"null","hours":null,"note":null}`},
		"a text that may be null":  {"<function=answer><parameter=note>true</parameter></function>", `{"note":"true"}`},
		"a list":                   {"<function=answer><parameter=tags>[\"a\", 1]</parameter></function>", `{"tags":["a",1]}`},
		"a reference":              {"<function=answer><parameter=place>12</parameter></function>", `{"place":"12"}`},
		"an unknown parameter":     {"<function=answer><parameter=what>12</parameter></function>", `{"what":12}`},
		"tags in a text":           {"<function=answer><parameter=title>a <b>c</b> & \"d\"</parameter></function>", `{"title":"a <b>c</b> & \"d\""}`},

		// Functions.
		"Llama 4":        {`[answer(title="Call the printer", urgent=True)]`, task},
		"Llama 4, marks": {`<|python_start|>[answer(title='Call the printer', urgent=True)]<|python_end|>`, task},
		"Llama, builtin": {`<|python_tag|>answer.call(title="Call the printer", urgent=True)`, task},
		"Gemma":          {"```tool_code\nprint(default_api.answer(title=\"Call the printer\", urgent=True))\n```", task},
		"Gemma 4":        {`<|tool_call>call:answer{title:<|"|>Call the printer<|"|>,urgent:true}<tool_call|>`, task},
		"FunctionGemma":  {"<start_function_call>call:answer{title:<escape>Call the printer<escape>,urgent:true}<end_function_call>", task},
		"quotes":         {`[answer(title='it\'s = (a)', tags=["x", 'y'], hours=None)]`, `{"title":"it's = (a)","tags":["x","y"],"hours":null}`},
		"parallel calls": {`[search(q="a"), answer(title="Call the printer", urgent=True)]`, task},
		"nothing given":  {"[answer()]", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := markup.Arguments(tc.text, "answer", json.RawMessage(schema))
			require.True(t, ok, tc.text)
			require.JSONEq(t, tc.want, got)
		})
	}
}

// What is no whole call of the tool is not read.
func TestArguments_OfNoCall(t *testing.T) {
	t.Parallel()
	call := `{"name":"answer","arguments":` + task + `}`
	for name, text := range map[string]string{
		"nothing":                 "",
		"prose":                   "The answer is yes.",
		"the arguments alone":     task,
		"another tool":            `<tool_call>{"name":"search","arguments":` + task + `}</tool_call>`,
		"another tool, tags":      "<function=search><parameter=title>x</parameter></function>",
		"another tool, Mistral":   "[TOOL_CALLS]answers[ARGS]" + task,
		"a longer name":           "<function=answer_all>" + task + "</function>",
		"a name without a call":   `{"name":"answer"}`,
		"a call in the answer":    `{"steps":[{"name":"answer","args":` + task + `}]}`,
		"a call in a list":        `[{"title":"x"},{"name":"answer","args":` + task + `}]`,
		"a call, then its result": `[{"name":"answer","args":` + task + `},{"title":"x"}]`,
		"a member with a call":    `{"title":"x","next":{"name":"answer","args":` + task + `}}`,
		"an answer in a fence":    "```json\n" + `{"steps":[{"name":"answer","args":` + task + `}]}` + "\n```",
		"an answer after prose":   `Here it is: {"steps":[{"name":"answer","args":` + task + `}]}`,
		"tags in an answer":       `{"title":"<function=answer><parameter=title>x</parameter></function>"}`,
		"a mark in an answer":     `{"title":"[TOOL_CALLS]answer[ARGS]{}"}`,
		"two functions deep":      `{"function":{"function":{"name":"answer","arguments":` + task + `}}}`,
		"a payload with a name":   `{"name":"Ann","arguments":["x"]}`,
		"broken JSON":             `<tool_call>{"name":"answer","arguments":{"title":"Call</tool_call>`,
		"cut in the arguments":    call[:len(call)-8],
		"cut, Mistral":            "[TOOL_CALLS]answer[ARGS]" + task[:20],
		"a parameter without end": "<function=answer><parameter=title>Call the printer",
		"the second one, too":     "<function=answer><parameter=title>Call</parameter><parameter=urgent>tr</function>",
		"GLM, cut":                "<tool_call>answer\n<arg_key>title</arg_key>\n<arg_value>Call",
		"a function, cut":         `[answer(title="Call the pr`,
		"a function in prose":     `I would use answer(title="x").`,
		"a function in a program": "def f():\n    return answer(title=\"x\")",
		"in the thinking":         "<think><tool_call>" + call + "</tool_call></think>",
		"in unfinished thinking":  "<think>\n<tool_call>" + call + "</tool_call>",
		"in Mistral's thinking":   "[THINK][TOOL_CALLS]answer[ARGS]" + task + "[/THINK]I am not sure.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := markup.Arguments(text, "answer", json.RawMessage(schema))
			require.False(t, ok, "%q: %s", text, got)
			require.Empty(t, got)
		})
	}
}

// Cut at any byte, a call is whole or no call.
func TestArguments_AreNeverAPart(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"Hermes":  "<tool_call>\n" + `{"name":"answer","arguments":` + task + "}\n</tool_call>",
		"Mistral": "[TOOL_CALLS]answer[ARGS]" + task + "</s>",
		"Qwen":    "<function=answer>\n<parameter=urgent>\ntrue\n</parameter>\n<parameter=title>\nCall the printer\n</parameter>\n</function>",
		"Llama 4": `[answer(title="Call the printer", urgent=True)]`,
		"Kimi":    "<|tool_call_begin|>functions.answer:0<|tool_call_argument_begin|>" + task + "<|tool_call_end|>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for cut := range len(text) {
				got, ok := markup.Arguments(text[:cut], "answer", json.RawMessage(schema))
				if ok {
					require.JSONEq(t, task, got, text[:cut])
				}
			}
		})
	}
}

// The work on a hostile text is limited.
func TestArguments_OfHostileTextsAreBounded(t *testing.T) {
	t.Parallel()
	const size = 1 << 18
	for name, unit := range map[string]string{
		"brackets":        "{",
		"objects":         `{"a":{`,
		"names":           `{"name":"answer",`,
		"functions":       "[answer(",
		"tags":            "<function=answer><parameter=a>",
		"marks":           "[TOOL_CALLS]answer",
		"marks, brackets": "[TOOL_CALLS]answer{",
		"keys":            "<tool_call>answer<arg_key>a</arg_key>",
		"calls":           "call:answer{",
		"thinking":        "<think>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, ok := markup.Arguments(strings.Repeat(unit, size/len(unit)), "answer", json.RawMessage(schema))
			require.False(t, ok)
			require.Less(t, time.Since(began), 20*time.Second)
		})
	}
}

// Each of these costs its size at each level, or for each of its parts, if the work is not limited.
func TestArguments_OfLargeHostileTextsAreBounded(t *testing.T) {
	t.Parallel()
	const levels, size = 9_000, 1 << 20
	large := `"` + strings.Repeat("x", size) + `"`
	nested := func(member string) string {
		return strings.Repeat(`{"`+member+`":`, levels) + large + strings.Repeat("}", levels)
	}
	member := `<parameter=p1>1</parameter>`
	for name, text := range map[string]string{
		"functions":       nested("function"),
		"envelopes":       nested("tool_calls"),
		"objects":         nested("a"),
		"lists":           strings.Repeat("[", levels) + large + strings.Repeat("]", levels),
		"functions, open": strings.Repeat(`{"function":`, levels) + large,
		"lists of lists":  "[" + strings.Repeat(`[1],`, size/4) + "1]",
		"brackets":        strings.Repeat(`{"function":{}}`, size/15),
		"repairs":         strings.Repeat("[answer("+strings.Repeat("a:1 ", 4_000)+")]", 64),
		"repairs, large":  strings.Repeat("[answer("+strings.Repeat("a:1 ", 16_000)+")]", 16),
		"quotes":          strings.Repeat("[answer(a='"+strings.Repeat(`x" `, 4_000)+"')]", 64),
		"parameters":      "<function=answer>" + strings.Repeat(member, size/len(member)) + "</function",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			got, _ := markup.Arguments(text, "answer", json.RawMessage(schema))
			require.Less(t, len(got), size)
			require.Less(t, time.Since(began), 20*time.Second)
			t.Log(time.Since(began))
		})
	}
}

// The schema is read once, however many parameters a call has.
func TestArguments_ReadTheSchemaOnce(t *testing.T) {
	t.Parallel()
	large := json.RawMessage(`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string","description":"` + strings.Repeat("x", 1<<18) + `"}}}`)
	began := time.Now()
	got, ok := markup.Arguments("<function=answer>"+strings.Repeat("<parameter=a>1</parameter>", 20_000)+"</function>", "answer", large)
	require.True(t, ok)
	require.JSONEq(t, `{"a":"1"}`, got)
	require.Less(t, time.Since(began), 20*time.Second)
}

// Whatever a model writes, the arguments are JSON, and the same each time.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		"<tool_call>{\"name\":\"answer\",\"arguments\":{}}</tool_call>", "[TOOL_CALLS]answer[ARGS]{}", `[answer(a="b", c=None)]`,
		"<function=answer><parameter=a>1</parameter></function>", "<tool_call>answer<arg_key>a</arg_key><arg_value>b</arg_value></tool_call>",
		"<think>answer(</think>call:answer{a:<|\"|>b<|\"|>}", "\xff{answer(", "Action: answer\nAction Input: {}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := markup.Arguments(text, "answer", json.RawMessage(schema))
		require.Equal(t, ok, json.Valid([]byte(got)), "%q", got)
		again, _ := markup.Arguments(text, "answer", json.RawMessage(schema))
		require.Equal(t, got, again)
	})
}
