package fold_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/fold"
)

const corpus = "../../../test/golden/corpus"

func read(t *testing.T, path string) []wire.Event {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var log struct{ Events []wire.Event }
	require.NoError(t, json.Unmarshal(b, &log))
	return log.Events
}

func answersOf(t *testing.T, path string) []*view.Execution {
	t.Helper()
	return fold.Of("r", "", read(t, path)).Answers
}

func only(t *testing.T, name string) *view.Execution {
	t.Helper()
	all := answersOf(t, filepath.Join("testdata", name+".json"))
	require.Len(t, all, 1)
	return all[0]
}

// picture summarises an execution: each call's attempt, cause and end, and the gates of its
// documents.
func picture(x *view.Execution) []string {
	marks := map[view.State]string{view.Passed: "+", view.Refused: "x", view.NotReached: ".", view.NotApplicable: " "}
	var out []string
	for _, c := range x.Calls {
		parts := []string{fmt.Sprint(c.Attempt), string(c.Cause), c.End}
		for _, e := range c.Envelopes {
			drawn := ""
			for _, g := range e.Gates {
				drawn += marks[g.State]
			}
			parts = append(parts, drawn)
		}
		out = append(out, strings.Join(parts, " | "))
	}
	return out
}

func TestAnswers_ShowEachAttemptAndItsGates(t *testing.T) {
	t.Parallel()
	const (
		violated = "schema violation | ++x....."
		accepted = "accepted | ++++++++"
	)
	for _, tc := range []struct {
		log      string
		lines    []string
		headline string
	}{
		{"contract", []string{"1 | first | refused | +++x...."}, "Stopped at gate 4 of 8, contract: media.image"},
		{"discard", []string{"1 | first | accepted | +++x.... | ++++++++"}, "Accepted on the first attempt"},
		{
			"corrected",
			[]string{"1 | first | " + violated, "2 | retry | " + violated, "3 | retry | " + accepted},
			"Accepted on attempt 3 after two schema violations",
		},
		{
			"exhausted",
			[]string{"1 | first | " + violated, "2 | retry | " + violated, "3 | retry | " + violated},
			"Given up after three attempts: three schema violations",
		},
		{"truncated", []string{"1 | first | truncated", "2 | retry | " + accepted}, "Accepted on attempt 2 after one truncation"},
		{
			"truncated-out",
			[]string{"1 | first | truncated", "2 | retry | truncated", "3 | retry | truncated"},
			"Given up after three attempts: three truncations",
		},
		{"refusal", []string{"1 | first | declined"}, "The model declined; this is final"},
		{
			"unknown-kind",
			[]string{"1 | first | wrong kind or version | +x......", "2 | retry | " + accepted},
			"Accepted on attempt 2 after one wrong kind or version",
		},
		{
			"shape",
			[]string{"1 | first | schema violation | x.......", "2 | retry | schema violation | x.......", "3 | retry | " + accepted},
			"Accepted on attempt 3 after two schema violations",
		},
		{
			"version",
			[]string{"1 | first | wrong kind or version | ++x.....", "2 | retry | " + accepted},
			"Accepted on attempt 2 after one wrong kind or version",
		},
		{
			"dedup",
			[]string{"1 | first | schema violation | ++++++++ | ++x.....", "2 | retry | accepted | ++++++++ | ++++++++"},
			"Accepted on attempt 2 after one schema violation",
		},
		{
			"limits",
			[]string{"1 | first | refused" + strings.Repeat(" | ++++++++", 5) + " | ++++x..."},
			"Stopped at gate 5 of 8, limits",
		},
		{
			"cantsay",
			[]string{"1 | first | no JSON", "2 | retry | no JSON", "3 | retry | text, not JSON", "4 | prose-fallback | " + accepted},
			"Converted to the schema by one further call after two answers without JSON, one answer in text",
		},
		{"fence", []string{"1 | first | " + accepted}, "Accepted on the first attempt"},
		{"clarify", []string{"1 | first | " + accepted}, "Waiting for an answer to the model's question"},
		{"schema-request", []string{"1 | first | " + accepted, "2 | next-turn | " + accepted}, "Accepted on attempt 2"},
	} {
		t.Run(tc.log, func(t *testing.T) {
			t.Parallel()
			x := only(t, tc.log)
			require.Equal(t, tc.lines, picture(x))
			require.Equal(t, tc.headline, x.Headline)
		})
	}
}

// An answer without a whole document is titled by what was wrong with it.
func TestAnswers_NameWhyNoDocumentWasRead(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string][2]string{
		"its JSON has a trailing comma at byte 41":                   {"broken JSON", "one answer with broken JSON"},
		"its JSON is broken at byte 9: want a JSON value here":       {"broken JSON", "one answer with broken JSON"},
		"its JSON document is not complete":                          {"incomplete JSON", "one answer with incomplete JSON"},
		"it is empty":                                                {"empty", "one empty answer"},
		"it is text, not a JSON document":                            {"text, not JSON", "one answer in text"},
		"it ends after its thinking, without an answer":              {"thinking only", "one answer of thinking only"},
		"it repeats a document of the prompt, without an answer":     {"repeats the prompt", "one answer that repeats the prompt"},
		"its JSON document is not an envelope with type and payload": {"not an envelope", "one answer without an envelope"},
		"it holds no JSON document":                                  {"no JSON", "one answer without JSON"}, // of an earlier release
	} {
		event := func(seq int, typ, payload string) wire.Event {
			return wire.Event{EventID: "e" + strconv.Itoa(seq), Sequence: seq, Type: wire.EventType(typ), NodeID: "n", Payload: json.RawMessage(payload)}
		}
		text, err := json.Marshal(detail)
		require.NoError(t, err)
		run := fold.Of("r", "", []wire.Event{
			event(1, "node.started", `{"nodeId":"n","typeId":"core.ai.callPrompt","attempt":0}`),
			event(2, "provider.usage", `{"nodeId":"n","provider":"p","model":"m","inputTokens":1,"outputTokens":1}`),
			event(3, "envelope.retry.attempted", `{"nodeId":"n","attempt":2,"reason":"parse-error","previousError":`+string(text)+`}`),
			event(4, "provider.usage", `{"nodeId":"n","provider":"p","model":"m","inputTokens":1,"outputTokens":1}`),
			event(5, "envelope.recovery.applied", `{"nodeId":"n","path":"jsonrepair","byteOffset":0}`),
			event(6, "node.completed", `{"nodeId":"n","outputs":{"output":{},"envelopes":[]},"turn":"payload"}`),
		})
		x := run.Answers[0]
		require.Equal(t, want[0], x.Calls[0].End, detail)
		require.Equal(t, want[0], x.Calls[1].Because.Words, detail)
		require.Equal(t, detail, x.Calls[0].Failure.Detail)
		require.Equal(t, "Accepted on attempt 2 after "+want[1], x.Headline)
		require.Equal(t, "broken JSON repaired", x.Calls[1].Recovery.Words)
		require.Equal(t, "payload", x.Turn)
		require.Equal(t, "Asked for the payload alone, because turn is auto.", x.Detail)
		var marks []string
		for _, lane := range run.Timeline.Lanes {
			for _, m := range lane.Marks {
				marks = append(marks, m.Words)
			}
		}
		require.Contains(t, marks, "model retry, attempt 2: "+want[0])
		require.Contains(t, marks, "broken JSON repaired")
	}
}

func TestAnswers_NameWhatTheContractRefusedAndAccepts(t *testing.T) {
	t.Parallel()
	stop := only(t, "contract").Calls[0].Envelopes[0].Stop()
	require.Equal(t, "envelope_contract_violation", stop.Code)
	require.Equal(t, "media.image", stop.RefusedKind)
	require.Contains(t, stop.AcceptedKinds, "vendor.waybill.ticket.triage")
}

func TestAnswers_NameThePlacesOfAViolation(t *testing.T) {
	t.Parallel()
	at := func(s string) *string { return &s }
	x := only(t, "corrected")
	require.Equal(t, []view.Problem{{
		Message:       `not one of the allowed values: "billing", "delivery", "return", "account", "other"`,
		SchemaPointer: "/properties/category/enum", InstancePointer: at("/category"),
	}}, x.Calls[0].Envelopes[0].Stop().Problems)
	require.Equal(t, []view.Problem{
		{Message: "required member missing: summary", SchemaPointer: "/required", InstancePointer: at("/summary")},
		{
			Message:       "want type null or string",
			SchemaPointer: "/properties/action/anyOf/0/properties/orderId/type", InstancePointer: at("/action/orderId"),
		},
	}, x.Calls[1].Envelopes[0].Stop().Problems)
	require.Equal(t, x.Calls[0].Failure, x.Calls[1].Because)
}

func TestAnswers_OfTruncationsAndRefusalsKeepWhatTheHostRecorded(t *testing.T) {
	t.Parallel()
	tokens := int64(64)
	require.Equal(t, &view.Truncation{StopReason: "max_tokens", OutputTokens: &tokens}, only(t, "truncated").Calls[0].Truncated)
	require.Equal(t, "envelope_truncation_unrecoverable", only(t, "truncated-out").Code)
	x := only(t, "refusal")
	require.Equal(t, "safety", x.Calls[0].Refusal.Category)
	require.NotEmpty(t, x.Calls[0].Refusal.Text)
	require.Equal(t, "envelope_refusal", x.Code)
	require.Contains(t, x.Detail, "not retried")
}

func TestAnswers_ADuplicateHasTheEarlierOutcome(t *testing.T) {
	t.Parallel()
	x := only(t, "dedup")
	first, second := x.Calls[0].Envelopes[0], x.Calls[1].Envelopes[0]
	require.Equal(t, view.OutcomeCached, second.Outcome)
	require.Equal(t, first.EnvelopeID, second.EnvelopeID)
	require.Equal(t, first.CorrelationID, second.CorrelationID)
	require.Equal(t, "no new events", second.Gates[7].Note)
}

func TestAnswers_AClarificationNamesTheEventsThatAsk(t *testing.T) {
	t.Parallel()
	var types []string
	for _, e := range only(t, "clarify").Calls[0].Envelopes[0].Events {
		types = append(types, e.Type)
	}
	require.Equal(t, []string{"clarification.requested", "interrupt.requested"}, types)
}

func TestAnswers_OfTheCorpus(t *testing.T) {
	t.Parallel()
	first := func(name string) *view.Execution { return answersOf(t, filepath.Join(corpus, name))[0] }

	x := first("feature-substituted-1.json")
	require.Equal(t, view.Model{Provider: "sample", Model: "sample-1"}, x.Substitution.From)
	require.Equal(t, view.Model{Provider: "mock", Model: "mock-large"}, x.Substitution.To)
	require.Equal(t, []string{"reasoning"}, x.Substitution.Missing)
	require.False(t, x.Substitution.Hidden)
	require.Len(t, x.Calls, 1, "the substitution belongs to the execution of its call")

	x = first("needy-1.json")
	require.Empty(t, x.Calls, "a model that lacks a capability is not called")
	require.Equal(t, view.Bad, x.Tone)
	require.Equal(t, "capability_not_provided", x.Code)

	x = first("model-asks-1.json")
	require.Equal(t, []string{"1 | first | accepted | ++++++++", "1 | after-answer | accepted | ++++++++"}, picture(x))

	lines := picture(first("feature-prose-1.json"))
	require.Equal(t, "4 | prose-fallback | accepted |   +     ", lines[len(lines)-1], "a value has one gate")
}

// Every envelope and every billed call of the golden corpus is shown once.
func TestAnswers_ShowEachEnvelopeAndEachCallOnce(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(corpus + "/*.json")
	require.NoError(t, err)
	require.Greater(t, len(files), 60)
	for _, file := range files {
		events := read(t, file)
		shown, used := map[string]int{}, 0
		for _, x := range fold.Of("r", "", events).Answers {
			require.NotEmpty(t, x.Headline, file)
			for _, c := range x.Calls {
				require.LessOrEqual(t, c.From, c.To, file)
				if c.Usage != nil {
					used++
				}
				for _, e := range c.Envelopes {
					require.Len(t, e.Gates, len(view.Gates), file)
					stopped := e.Outcome == view.OutcomeRefused || e.Outcome == view.OutcomeDiscarded
					require.Equal(t, stopped, e.Stop() != nil, file)
					if e.Outcome == view.OutcomeAccepted && e.Form == view.FormEnvelope {
						shown[e.Events[0].EventID]++
					}
				}
			}
		}
		for _, e := range events {
			if e.Type == "provider.usage" {
				used--
			}
			if e.CausationID != "" && (e.Type == "artifact.created" || e.Type == "clarification.requested") {
				require.Equal(t, 1, shown[e.EventID], "%s: event %d", file, e.Sequence)
			}
		}
		require.Zero(t, used, file)
	}
}

// The view of a growing log is the view of the whole log.
func TestView_OfAGrowingLogIsThatOfTheWhole(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"corrected", "dedup", "clarify", "cantsay"} {
		events := read(t, filepath.Join("testdata", name+".json"))
		grown := fold.New("r", "")
		for i, e := range events {
			grown.Add(e)
			grown.Add(e) // a repeated event changes nothing
			require.Equal(t, rendered(t, fold.Of("r", "", events[:i+1])), rendered(t, grown.View()), name)
		}
		require.Equal(t, len(events), grown.Next())
	}
}

func rendered(t *testing.T, v *view.Run) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func FuzzAdd(f *testing.F) {
	f.Add([]byte(`{"eventId":"e","sequence":1,"type":"envelope.retry.attempted","nodeId":"n","payload":{"attempt":2,"reason":"schema-violation","previousError":"x (/properties/a)"}}`))
	f.Add([]byte(`{"eventId":"e","sequence":1,"type":"provider.usage","nodeId":"n","payload":{"inputTokens":"1","costEstimateUsd":1e999}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var e wire.Event
		if json.Unmarshal(doc, &e) != nil || e.Sequence < 0 || e.Sequence > 1<<30 {
			return
		}
		again := e
		again.Sequence++
		require.NotEmpty(t, rendered(t, fold.Of("r", "", []wire.Event{e, again})))
	})
}

func TestAnswers_NameThePromptTheThoughtsAndTheTimesOfACall(t *testing.T) {
	t.Parallel()
	v := run(t,
		step{0, "run.started", ""},
		step{10, "node.started", `{"nodeId":"b","typeId":"core.ai.callPrompt"}`},
		step{100, "prompt.composed", `{"nodeId":"b","hash":"sha256:1"}`},
		step{300, "agent.reasoned", `{"nodeId":"b","reasoning":"hm"}`},
		step{400, "output.chunk", `{"nodeId":"b","chunk":"{","partial":{"isPartial":true,"index":0,"total":-1},"payload":{}}`},
		step{500, "output.chunk", `{"nodeId":"b","chunk":"}","isLast":true}`},
		step{1100, "provider.usage", `{"nodeId":"b","provider":"p","model":"m","inputTokens":10,"outputTokens":40}`},
		step{1100, "envelope.retry.attempted", `{"nodeId":"b","attempt":2,"reason":"schema-violation","previousError":"no"}`},
		step{1200, "prompt.composed", `{"nodeId":"b","hash":"sha256:2"}`},
		step{1500, "output.chunk", `{"nodeId":"b","chunk":"{\"a\":","partial":{"isPartial":true,"index":0,"total":-1},"payload":{}}`},
	)
	calls := v.Answers[0].Calls
	require.Len(t, calls, 2)
	require.Equal(t, 2, *calls[0].Prompt)
	require.Equal(t, []int{3}, calls[0].Thoughts)
	require.EqualValues(t, 200, *calls[0].FirstMs)
	require.EqualValues(t, 1000, *calls[0].TookMs)
	require.InDelta(t, 50, *calls[0].TokensPerSecond, 1e-9)
	require.Nil(t, calls[0].Partial, "the answer is complete")
	require.Equal(t, 8, *calls[1].Prompt)
	require.Equal(t, 9, *calls[1].Partial)
	require.EqualValues(t, 300, *calls[1].FirstMs)
	require.Nil(t, calls[1].TookMs)
}

// A call whose server never answered has its prompt, and its story is the error.
func TestAnswers_OfACallWithoutAnAnswerIsItsError(t *testing.T) {
	t.Parallel()
	v := run(t,
		step{0, "run.started", ""},
		step{10, "node.started", `{"nodeId":"b","typeId":"core.ai.callPrompt"}`},
		step{20, "prompt.composed", `{"nodeId":"b","hash":"sha256:1"}`},
		step{30, "node.failed", `{"nodeId":"b","error":{"code":"provider_unavailable","message":"down"}}`},
	)
	x := v.Answers[0]
	require.Equal(t, view.Story{Tone: view.Bad, Headline: "No answer received", Code: "provider_unavailable", Detail: "down"}, x.Story)
	require.Equal(t, 2, *x.Calls[0].Prompt)
}

func TestAnswers_SayWhyAnotherModelWasCalled(t *testing.T) {
	t.Parallel()
	const lost = `{"nodeId":"b","attempt":2,"lastError":{"code":"outcome_unknown","details":{"reason":"executor_lost"}}}`
	v := run(t,
		step{0, "run.started", ""},
		step{10, "model.capability.substituted", `{"nodeId":"b","originalProvider":"p","originalModel":"m","fallbackProvider":"q","fallbackModel":"n","missingCapabilities":["vision-input"]}`},
		step{10, "node.started", `{"nodeId":"b","typeId":"core.ai.callPrompt"}`},
		step{20, "node.retried", `{"nodeId":"b","attempt":1,"lastError":{"code":"rate_limited","message":"busy","details":{"reason":"model_failed","next":{"provider":"q","model":"o"}}}}`},
		step{20, "node.started", `{"nodeId":"b","typeId":"core.ai.callPrompt","attempt":1}`},
		step{30, "node.retried", lost},
		step{30, "node.started", `{"nodeId":"b","typeId":"core.ai.callPrompt","attempt":2}`},
		step{40, "node.retried", `{"nodeId":"b","attempt":3,"lastError":{"code":"x"}}`},
		step{50, "node.started", `{"nodeId":"b","typeId":"core.ai.callPrompt","attempt":3}`},
	)
	var choices []string
	for _, x := range v.Answers {
		choices = append(choices, x.Choice)
	}
	require.Equal(t, []string{
		"Called instead of p/m, which lacks vision-input.",
		"Called because the model before it failed: busy.",
		"Called because the model before it failed: busy.",
		"",
	}, choices)
}
