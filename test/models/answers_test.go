package models

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// Answers to a request for a task.
const (
	taskKind   = "vendor.acme.task"
	taskSchema = `{"title":"Task","type":"object","additionalProperties":false,"required":["title","urgent"],"properties":{"title":{"type":"string"},"urgent":{"type":"boolean"}}}`
	task       = `{"title":"Call the printer","urgent":true}`
	taskDraft  = `{"title":"draft","urgent":false}`
	taskNext   = `{"title":"Buy toner","urgent":false}`
)

// askedFor are the ways to ask for the answers of this file.
var askedFor = map[string]struct{ typ, config string }{
	"task":     {"core.ai.structuredOutput", `"outputSchema":` + taskSchema},
	"repaired": {"core.ai.structuredOutput", `"repairJson":true,"outputSchema":` + taskSchema},
	"kind":     {"core.ai.callPrompt", `"envelopeType":"` + taskKind + `"`},
	"contract": {"core.ai.callPrompt", `"envelopeContract":{"accepts":["` + taskKind + `","` + kind + `"]}`},
	"integer":  {"core.ai.structuredOutput", `"outputSchema":{"type":"integer"}`},
	"integers": {"core.ai.structuredOutput", `"outputSchema":{"type":"array","items":{"type":"integer"}}`},
	"object":   {"core.ai.structuredOutput", `"outputSchema":{"type":"object"}`},
	"text":     {"core.ai.callPrompt", `"temperature":0`},
}

func answerWorkflows() (out []string) {
	for name, a := range askedFor {
		config := fmt.Sprintf(`{"prompt":%q,"maxTokens":1024,%s}`, question, a.config)
		out = append(out, workflow("answers-"+name, node("ask", a.typ, config, "{}")))
	}
	return out
}

func envelopeOf(payload string) string {
	return `{"type":"` + taskKind + `","payload":` + payload + `}`
}

func inFence(doc string) string { return "```json\n" + doc + "\n```" }

// spokenAnswer is an answer with words around it.
type spokenAnswer struct {
	asked, text string
	// output is the value of the answer; empty if the model is called again, with the correction.
	output, correction string
}

var spokenAnswers = map[string]spokenAnswer{
	"two envelopes in blocks":        {"kind", "First try:\n" + inFence(envelopeOf(taskDraft)) + "\n\nOn reflection, the correct one:\n" + inFence(envelopeOf(task)), task, ""},
	"two envelopes in a list":        {"kind", `{"envelopes":[` + envelopeOf(taskDraft) + "," + envelopeOf(task) + `]}`, task, ""},
	"two bare envelopes":             {"kind", envelopeOf(taskDraft) + "\n" + envelopeOf(task), task, ""},
	"two envelopes, contract alone":  {"contract", inFence(envelopeOf(taskDraft)) + "\n" + inFence(envelopeOf(task)), task, ""},
	"another turn":                   {"task", task + "<|im_end|>\n<|im_start|>user\nnext<|im_end|>\n<|im_start|>assistant\n" + taskNext, task, ""},
	"another turn of Llama":          {"task", task + "<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nnext<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n" + taskNext, task, ""},
	"another turn of Mistral":        {"task", task + "</s>[INST] next [/INST] " + taskNext, task, ""},
	"another turn in plain text":     {"task", task + "\n\nUser: another one\nAssistant: " + taskNext, task, ""},
	"another turn with a list":       {"kind", `{"envelopes":[` + envelopeOf(task) + "]}<|im_end|>\n<|im_start|>assistant\n" + `{"envelopes":[` + envelopeOf(taskNext) + "]}", task, ""},
	"a source":                       {"integer", "The total is 42.\n\nSources:\n[1]", "", "it is text, not a JSON document"},
	"a source without a heading":     {"integer", "The answer is 7.\n\n[1] https://x.test/a\n[2]", "", "it is text, not a JSON document"},
	"sources":                        {"integers", "The primes are 2, 3 and 5.\n\nReferences:\n[1]\n[2]", "", "it is text, not a JSON document"},
	"a contraction":                  {"repaired", `{'title': 'It's late', 'urgent': False}`, "", "its JSON is broken at byte 1"},
	"an escape that JSON lacks":      {"repaired", `{"title":"\d+ items","urgent":true}`, "", "an unknown escape"},
	"a value that is missing":        {"repaired", `{"title":"a","urgent":}`, "", "want a JSON value here"},
	"other quotes":                   {"repaired", `{'title': 'Call the printer', 'urgent': True,}`, task, ""},
	"second thoughts":                {"task", task + "\n\nWait, that's wrong. It should be urgent: false.", "", "it takes its answer back in words"},
	"a correction in words":          {"kind", task + "\n\nCorrection: urgent is false.", "", "it takes its answer back in words"},
	"a rejected one in a comment":    {"task", task + ` // not {"title":"x","urgent":false}`, task, ""},
	"a rejected one after it":        {"task", "Correct answer:\n" + task + "\nIncorrect:\n" + taskDraft, task, ""},
	"a crossed one after it":         {"task", "✅ " + task + "\n\n❌ " + taskDraft, task, ""},
	"the input of another tool":      {"task", "Thought: maybe\nAction: search\nAction Input: " + taskDraft, "", "calls a tool that it was not offered"},
	"context":                        {"task", "<context>\n" + taskDraft + "\n</context>\n\nThere is nothing to do.", "", "without an answer"},
	"a quotation":                    {"task", "> " + taskDraft + "\n\nThis quote is not a task.", "", "it takes its answer back"},
	"a format":                       {"task", "Required format:\n{\"title\": \"<title>\", \"urgent\": true}\n\nPlease give me the mail.", "", "an example, a draft or a quotation"},
	"an example in a question":       {"task", "Please provide the mail, for example:\n" + inFence(taskDraft), "", "an example, a draft or a quotation"},
	"a schema after the answer":      {"object", "{\"a\":1}\n\nSchema:\n" + inFence(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"integer"}}}`), `{"a":1}`, ""},
	"thinking before a text":         {"text", "<think>hm</think>\n\nHello", `"Hello"`, ""},
	"a question without an answer":   {"kind", asksQuestions(`{"id":"q","question":"?","schema":{"$ref":"#"}}`), "", "no value satisfies the schema"},
	"an unknown kind, a list of own": {"kind", `{"envelopes":[{"type":"vendor.acme.nope","payload":{}}]}`, "", "its type is not one of " + taskKind + ", clarification.request, schema.request, error"},
}

func asksQuestions(questions ...string) string {
	var list []string
	for _, q := range questions {
		list = append(list, `{"type":"clarification.request","payload":{"questions":[`+q+`]}}`)
	}
	return `{"envelopes":[` + strings.Join(list, ",") + `]}`
}

// Words around an answer decide whether it is one, through a host: its value with one call, or a correction and
// the next answer with two.
func TestAnswers_WordsDecide(t *testing.T) {
	t.Parallel()
	c := client(t, apiKey)
	for name, tc := range spokenAnswers {
		t.Run(name, func(t *testing.T) {
			id := "answers-" + unsafeInName.ReplaceAllString(strings.ToLower(name), "-")
			second, want := task, task
			switch tc.asked {
			case "integer":
				second, want = "7", "7"
			case "integers":
				second, want = "[7]", "[7]"
			}
			house.desk.put(id, answer{text: tc.text, in: 10, out: 5}, answer{text: second, in: 20, out: 6})
			run := start(t, c, asks("answers-"+tc.asked, id, house, house.seeing, ""))
			t.Parallel() // start all runs before checking the first
			events := finish(t, c, run)
			require.Equal(t, "run.completed", events[len(events)-1].Type, "%s", dump(events))
			calls := 1
			if tc.output != "" {
				want = tc.output
			} else {
				calls = 2
				require.Contains(t, string(of(events, retry)[0].Payload), tc.correction)
				requireHas(t, `{"inputTokens":20,"outputTokens":6}`, of(events, usage)[1].Payload)
			}
			require.JSONEq(t, want, outputOf(t, events), "%s", dump(events))
			require.Equal(t, calls, house.desk.count(id))
			require.Len(t, of(events, usage), calls)
			requireHas(t, `{"inputTokens":10,"outputTokens":5}`, of(events, usage)[0].Payload)
		})
	}
}

// A model that never gives an answer fails its node with an error, and without wrong data.
func TestAnswers_WithoutOneTheNodeFails(t *testing.T) {
	t.Parallel()
	c := client(t, apiKey)
	const id = "answers-never"
	doubtful := answer{text: task + "\n\nActually, urgent should be false.", in: 10, out: 5}
	house.desk.put(id, doubtful, doubtful, doubtful, doubtful)
	events := finish(t, c, start(t, c, asks("answers-task", id, house, house.seeing, "")))
	requireHas(t, `{"error":{"code":"envelope_invalid"}}`, of(events, failed)[0].Payload)
	require.Empty(t, of(events, completed))
	require.Len(t, of(events, usage), house.desk.count(id))
}

// OpenWOP envelope contract §8: the limits of questions and of schema rounds count within one turn.
func TestAnswers_LimitsCountWithinATurn(t *testing.T) {
	t.Parallel()
	c := client(t, apiKey)
	var questions []string
	for i := range 5 {
		questions = append(questions, fmt.Sprintf(`{"id":"q%d","question":"Which?"}`, i))
	}
	request := `{"type":"schema.request","payload":{"envelopeType":"` + taskKind + `"}}`
	for name, tc := range map[string]struct{ text, payload string }{
		"clarification": {asksQuestions(questions...), `{"nodeId":"ask","kind":"clarification","limit":3,"observed":4}`},
		"schema":        {`{"envelopes":[` + strings.Join([]string{request, request, request, request}, ",") + `]}`, `{"nodeId":"ask","kind":"schema","limit":2,"observed":3}`},
		"envelopes":     {`{"envelopes":[` + strings.Join([]string{envelopeOf(task), envelopeOf(task), envelopeOf(task), envelopeOf(task), envelopeOf(task), envelopeOf(task)}, ",") + `]}`, `{"nodeId":"ask","kind":"envelopes","limit":5,"observed":6}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := "answers-limit-" + name
			house.desk.put(id, answer{text: tc.text, in: 10, out: 5})
			events := finish(t, c, start(t, c, asks("answers-kind", id, house, house.seeing, "")))
			requireHas(t, `{"error":{"code":"cap_breached"}}`, of(events, failed)[0].Payload)
			require.Len(t, of(events, breached), 1)
			requireHas(t, tc.payload, of(events, breached)[0].Payload)
			require.Equal(t, 1, house.desk.count(id))
		})
	}
}

// The flags of `waybill dev` for substitution, limits and the growth of the budget reach a run.
func TestFlags_OfTheHostReachARun(t *testing.T) {
	t.Parallel()
	needsHost(t)
	all := append([]*vendor{house}, vendors...)
	h := harness.StartWith(t, harness.Options{
		Args: append(hostArgs(urls(all)), "--durability", "process", "--model-substitution=false", "--limit-clarification-rounds", "1",
			"--limit-envelopes-per-turn", "2", "--truncation-multiplier", "3"),
		Env: keys(all),
	})
	require.NoError(t, h.Deploy(workflows(), "dev-key"))
	c := checked(t, h.Client("dev-key"))

	blind := vendors[0]
	events := finish(t, c, start(t, c, asks("look-"+vendors[1].id, "flags-blind", blind, blind.blind, "")))
	requireFailed(t, events, "capability_not_provided", "vision-input")
	require.Empty(t, of(events, "model.capability.substituted"))
	require.Zero(t, vendors[1].desk.count("flags-blind"))

	house.desk.put("flags-questions", answer{text: asksQuestions(`{"id":"a","question":"?"}`, `{"id":"b","question":"?"}`), in: 10, out: 5})
	events = finish(t, c, start(t, c, asks("answers-kind", "flags-questions", house, house.seeing, "")))
	requireHas(t, `{"kind":"clarification","limit":1,"observed":2}`, of(events, breached)[0].Payload)

	house.desk.put("flags-envelopes", answer{text: `[` + envelopeOf(task) + `,` + envelopeOf(task) + `,` + envelopeOf(task) + `]`, in: 10, out: 5})
	events = finish(t, c, start(t, c, asks("answers-kind", "flags-envelopes", house, house.seeing, "")))
	requireHas(t, `{"kind":"envelopes","limit":2,"observed":3}`, of(events, breached)[0].Payload)

	blind.desk.put("flags-cut", cutOff(long(100), 0), answer{text: good, in: 10, out: 5})
	finish(t, c, start(t, c, asks("value-whole", "flags-cut", blind, blind.seeing, "")))
	calls := blind.desk.of("flags-cut")
	require.Len(t, calls, 2)
	second, err := blind.read(calls[1].body)
	require.NoError(t, err)
	require.Equal(t, 3*budget, second.budget)
}

// A pack that needs a capability that no model of the host has stops the start (RFC 0031 §A).
func TestFlags_APackThatTheHostCannotServeStopsIt(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	require.NoError(t, writeFiles(dir, map[string]string{
		"packs/needy/pack.json": `{"name":"vendor.acme.needy","version":"1.0.0","engines":{"openwop":">=1.0"},"runtime":{"language":"remote","entry":"none"},
			"peerDependencies":{"aiProviders":{"modelCapabilities":["vision-input"]}},"nodes":[{"typeId":"vendor.acme.needy.ask","version":"1.0.0","category":"chat","role":"side-effect"}]}`,
		"packs/needy/waybill.json": `{"nodes":{"vendor.acme.needy.ask":{"base":"core.ai.callPrompt","config":{"prompt":"x"}}}}`,
	}))
	out, status := harness.Command(t, "dev", "--data-dir", t.TempDir(), "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--packs", filepath.Join(dir, "packs"))
	require.NotZero(t, status)
	require.Contains(t, out, "vision-input")
	require.Contains(t, out, "vendor.acme.needy")
}
