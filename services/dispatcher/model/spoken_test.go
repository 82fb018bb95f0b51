package model

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
)

// next is an answer to a question that the model invented.
const next = `{"title":"Buy toner","urgent":false}`

// What follows the end of the model's turn is not its answer.
func TestExtract_EndsWithTheTurn(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	for name, after := range map[string]string{
		"ChatML":                 "<|im_end|>\n<|im_start|>user\nnext<|im_end|>\n<|im_start|>assistant\n" + next,
		"ChatML, broken":         "<|im_end|>\n<|im_start|>assistant\n{\"title\":",
		"Llama 3":                "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nnext<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n" + next,
		"Llama 3, no question":   "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n" + next,
		"Llama 2":                "</s>[INST] next [/INST] " + next,
		"Mistral without an end": " [INST] next [/INST] " + next,
		"Gemma":                  "<end_of_turn>\n<start_of_turn>user\nnext<end_of_turn>\n<start_of_turn>model\n" + next,
		"GPT":                    "<|endoftext|>" + next,
		"DeepSeek":               "<｜end▁of▁sentence｜><｜User｜>next<｜Assistant｜>" + next,
		"DeepSeek, plain bars":   "<|end_of_sentence|><|User|>next<|Assistant|>" + next,
		"Cohere":                 "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>next<|END_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>" + next,
		"Phi":                    "<|end|><|user|>\nnext<|end|><|assistant|>\n" + next,
		"roles":                  "\n\nUser: next\nAssistant: " + next,
		"roles in bold":          "\n\n**User:** next\n**Assistant:**\n```json\n" + next + "\n```",
		"other roles":            "\nHuman: thanks\nAI: " + next,
		"Alpaca":                 "\n\n### Instruction:\nNext\n\n### Response:\n" + next,
		"questions":              "\nQ: next\nA: " + next,
		"examples":               "\n\n---\n\n**Example 2**\nMail: next\nOutput: " + next,
		"tags":                   "\n<next_input>next</next_input>\n<output>" + next + "</output>",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, before := range []string{"", "<think>" + sketch + "</think>", "Here you are: "} {
				got, problem := answerOf(t, s, before+task+after)
				require.Empty(t, problem)
				require.JSONEq(t, task, got)
				got, problem = answerOf(t, s, before+`{"title":"a",,}`+after)
				require.Empty(t, got, "the broken one was to be the answer")
				require.Contains(t, problem, "its JSON is broken")
			}
		})
	}
	for name, text := range map[string]string{
		"the prompt repeated": "User: the printer is down " + sketch + "\nAssistant: " + task,
		"examples repeated":   "Input: a\nOutput: " + sketch + "\n\nInput: b\nOutput: " + task,
		"a turn before":       "<|im_start|>user\n" + sketch + "<|im_end|>\n<|im_start|>assistant\n" + task,
		"two channels":        "<|channel|>commentary<|message|>" + sketch + "<|end|><|start|>assistant<|channel|>final<|message|>" + task,
		"a mark in a string":  sketch + "\n" + task,
	} {
		got, problem := answerOf(t, s, text)
		require.Empty(t, problem, name)
		require.JSONEq(t, task, got, name)
	}
}

// A document of which the text says that it is no answer is none.
func TestExtract_TakesNothingThatTheTextRejects(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	fenced := "```json\n" + sketch + "\n```"
	for name, rejected := range map[string]string{
		"incorrect":            "Incorrect:\n" + sketch,
		"bad":                  "**Bad:**\n" + fenced,
		"a cross":              "❌ " + sketch,
		"a heading":            "**Invalid example (do not use)**\n" + fenced,
		"a Markdown heading":   "## Wrong\n\n" + fenced,
		"before a correction":  "Before your correction I had:\n" + fenced,
		"previous":             "The previous task was:\n" + sketch,
		"an alternative":       "Alternatively, if not urgent: " + sketch,
		"a draft":              "Draft: " + sketch,
		"a first attempt":      "My first attempt:\n" + sketch,
		"a denial":             "I will not answer with " + sketch + ", since it is none.",
		"a denial, shorter":    "Not " + sketch + " of course.",
		"a denial after it":    "Your text " + sketch + " was not a mail.",
		"a condition":          "If it were late I would say:\n" + sketch,
		"struck out":           "~~" + sketch + "~~",
		"deleted":              "<del>" + sketch + "</del>",
		"an input":             "Input: " + sketch + "\nOutput: none",
		"context":              "<context>\n" + sketch + "\n</context>\n\nThere is nothing to do.",
		"a document":           "<document>" + sketch + "</document>\nNo task found.",
		"a search":             "<search_result>" + sketch + "</search_result>\nNo task found.",
		"an observation":       "Observation: " + sketch + "\nThought: done.",
		"what a tool said":     "Here is what the API returned:\n" + fenced + "\nIt has no task.",
		"a quotation":          "> " + sketch + "\n\nThis quote is not a task.",
		"a format":             "Required format:\n" + sketch + "\n\nPlease give me the mail.",
		"the form":             "Error: the expected format is " + sketch,
		"an example":           "Please send the mail, for example:\n" + fenced,
		"a schema":             "Schema:\n" + fenced,
		"a template":           "Reply as follows:\n{\"title\": \"<title>\", \"urgent\": true}",
		"a type":               "It looks so:\n{\"title\":\"<string>\",\"urgent\":false}",
		"a note":               "Note: " + sketch + " was done before.",
		"a remark after":       sketch + " // wrong",
		"a remark in brackets": sketch + " (incorrect)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := answerOf(t, s, rejected)
			require.Empty(t, got)
			require.NotEmpty(t, problem)
			for _, text := range []string{task + "\n\n" + rejected, "Correct answer:\n" + task + "\n" + rejected, rejected + "\n\nFinal answer:\n" + task} {
				if got, _ := answerOf(t, s, text); got != "" { // or the answer is doubtful
					require.JSONEq(t, task, got, text)
				}
			}
		})
	}
	got, _ := answerOf(t, s, task+` // not `+sketch)
	require.JSONEq(t, task, got)
	for _, label := range []string{
		"Here is the corrected version of your previous answer:", "Here is the JSON in the required format:", "The task from the given input:",
		"The mail does not name a date, so here it is:", "Final answer:", "Not the draft, but the final answer:", "Result as requested:", "Good:", "✅",
	} {
		got, problem := answerOf(t, s, label+"\n"+task)
		require.Empty(t, problem, label)
		require.JSONEq(t, task, got, label)
	}
}

// An answer that the text takes back is asked for again.
func TestExtract_TakesNoAnswerThatIsTakenBack(t *testing.T) {
	t.Parallel()
	s := taskSchema(t)
	for _, thought := range []string{
		"Wait, that's wrong. It should be urgent: false.", "Actually, urgent should be false.", "Correction: urgent is false.",
		"Hmm, no. Set urgent to false instead.", "On second thought, the title should be \"Buy toner\".", "Oops, urgent should be false.",
		"Scratch that.", "Sorry, ignore that.", "Edit: not urgent.", "I made a mistake: it can wait.", "Let me correct that: it is not urgent.",
		"That's not right, it can wait.", "**Correction:** it can wait.", "My mistake, it can wait.",
	} {
		for _, gap := range []string{"\n\n", "\n", " "} {
			got, problem := answerOf(t, s, task+gap+thought)
			require.Empty(t, got, thought)
			require.Contains(t, problem, "takes its answer back", thought)
			got, _ = answerOf(t, s, sketch+gap+thought+"\n\n"+task)
			require.JSONEq(t, task, got, thought)
		}
	}
	for _, remark := range []string{
		"That is all.", "Let me know if you need more.", "Note: \"urgent\" should be false if the printer works again.", "No other task is in the mail.",
		"Do you need anything else?", "The mail does not name a date.", "I hope this helps!",
	} {
		got, problem := answerOf(t, s, task+"\n\n"+remark)
		require.Empty(t, problem, remark)
		require.JSONEq(t, task, got, remark)
	}
}

// Numbers of sources are no values.
func TestExtract_TakesNoSourceForANumber(t *testing.T) {
	t.Parallel()
	for source, texts := range map[string]map[string]string{
		`{"type":"integer"}`: {
			"The total is 42.\n\nSources:\n[1]":             "",
			"The answer is 7.\n\n[1] https://x.test/a\n[2]": "",
			"Result: forty-two\n\n1. [3]":                   "",
			"[1]\n\nThe total is 42.":                       "",
			"```\n41\n```\nso the answer is 42.":            "",
			"```json\n42\n```\nThe total is 42.":            "42",
			"Answer: [42]":                                  "42",
			"[42]":                                          "42",
			"{\"value\":42}\n\nSources:\n[1]":               "42",
			"**References**\n\n[3]":                         "",
		},
		`{"type":"array","items":{"type":"integer"}}`: {
			"The primes are 2, 3 and 5.\n\nReferences:\n[1]\n[2]":             "",
			"The primes below six are 2, 3 and 5 [1][2].\n\n**Sources:** [1]": "",
			"I found two: three and five.\n\n---\n[1]":                        "",
			"The primes are:\n[2, 3, 5]\n\nSources:\n[1]":                     "[2, 3, 5]",
			"```json\n[2, 3, 5]\n```\n\n[1]":                                  "[2, 3, 5]",
			"[2, 3, 5]\n\nSources: [1], [2]":                                  "[2, 3, 5]",
		},
	} {
		s, err := schema.Compile("kind", []byte(source))
		require.NoError(t, err)
		for text, want := range texts {
			got, _ := answerOf(t, s, text)
			require.Equal(t, want, got, "%q", text)
		}
	}
}

// A schema next to the answer is not the answer of a node that accepts any object.
func TestExtract_PrefersTheAnswerToItsSchema(t *testing.T) {
	t.Parallel()
	s, err := schema.Compile("kind", []byte(`{"type":"object"}`))
	require.NoError(t, err)
	const form = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"integer"}}}`
	for _, text := range []string{"{\"a\":1}\n\nSchema:\n" + form, "{\"a\":1}\n\nIt satisfies this:\n```json\n" + form + "\n```", form + "\n{\"a\":1}"} {
		got, problem := answerOf(t, s, text)
		require.Empty(t, problem)
		require.Equal(t, `{"a":1}`, got)
	}
	got, _ := answerOf(t, s, "Here you are:\n"+form)
	require.Equal(t, form, got, "it may be asked for")
}

// The input of another tool is not the answer.
func TestWithoutCalls_KeepsTheInputOfTheAnswer(t *testing.T) {
	t.Parallel()
	e := &emission{spec: spec{expected: expectation{name: "vendor.x.task", kind: "vendor.x.task", schema: json.RawMessage(`{}`)}}}
	for tool, kept := range map[string]int{"search": 0, "Final Answer": 1, "answer": 1, "vendor_x_task": 1, "task": 1, "None": 0} {
		x := e.withoutCalls(extract("Thought: hm\nAction: " + tool + "\nAction Input: " + task))
		require.Len(t, x.documents, kept, tool)
		require.Equal(t, kept == 0, x.rejected, tool)
	}
}

// A text is the answer of a node without the thinking before it.
func TestText_HasNoThinking(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<think>hm</think>\n\nHello":                  "Hello",
		"[THINK]hm[/THINK]Hello":                      "Hello",
		"<thinking>a</thinking><think>b</think>Hello": "Hello",
		"<think>hm</think>":                           "",
		"<think>hm":                                   "<think>hm",
		"Hello <think>hm</think>":                     "Hello <think>hm</think>",
		"<document>a</document> Hello":                "<document>a</document> Hello",
		"[Reasoning] is hard.":                        "[Reasoning] is hard.",
		"  Hello":                                     "  Hello",
	} {
		require.Equal(t, want, withoutThoughts(text))
	}
}
