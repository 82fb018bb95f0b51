package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

var (
	fenced  = mock.Entry{Content: "```json\n{\"valid\":true}\n```"}
	broken  = mock.Entry{Content: `{"valid":`}
	refusal = mock.Entry{RefusalText: "no", StopReason: "safety"}
)

func stopped(with string, e mock.Entry) mock.Entry {
	e.StopReason = with
	return e
}

// refusing rejects the first envelope with a code, and accepts the others.
func refusing(calls *int, code string) func(model.AcceptRequest) (model.Outcome, error) {
	return func(req model.AcceptRequest) (model.Outcome, error) {
		if *calls++; *calls == 1 {
			return model.Outcome{Status: "invalid", Reason: code + ": no"}, nil
		}
		return acceptAll(req)
	}
}

// OpenWOP envelope contract §14.2, row by row: the effect of each kind of answer, followed by a
// correct one.
func TestTruthTable_EveryRow(t *testing.T) {
	t.Parallel()
	const (
		again    = "provider.usage envelope.retry.attempted provider.usage"
		moreRoom = "provider.usage envelope.truncated envelope.retry.attempted provider.usage"
	)
	for name, tc := range map[string]struct {
		answer mock.Entry
		events string
		reason string // of the retry; empty means no retry
		code   string // of the node; empty means completed
		advice bool   // the second attempt has a corrective fragment
		budget []int
	}{
		"clean, parses, validates: accept":                             {good, "provider.usage", "", "", false, []int{100}},
		"clean, after lenient parse, validates: accept, recovery":      {fenced, "provider.usage envelope.recovery.applied", "", "", false, []int{100}},
		"clean, parses, does not validate: schema-violation":           {bad, again, "schema-violation", "", true, []int{100, 100}},
		"clean, recovered, does not validate: schema-violation":        {mock.Entry{Content: "```\n{\"valid\":1}\n```"}, "provider.usage envelope.recovery.applied envelope.retry.attempted provider.usage", "schema-violation", "", true, []int{100, 100}},
		"clean, does not parse: parse-error":                           {broken, again, "parse-error", "", true, []int{100, 100}},
		"clean, says nothing: parse-error":                             {mock.Entry{}, again, "parse-error", "", true, []int{100, 100}},
		"truncated, does not parse: truncation":                        {cut, moreRoom, "truncation", "", false, []int{100, 200}},
		"truncated, parses, does not validate: truncation":             {stopped("max_tokens", bad), moreRoom, "truncation", "", false, []int{100, 200}},
		"truncated, even though it parses and validates: truncation":   {stopped("length", good), moreRoom, "truncation", "", false, []int{100, 200}},
		"refused, says nothing: terminal":                              {refusal, "provider.usage envelope.refusal", "", "envelope_refusal", false, []int{100}},
		"refused, even though it parses and validates: terminal":       {stopped("safety", good), "provider.usage envelope.refusal", "", "envelope_refusal", false, []int{100}},
		"refused and truncated: refusal wins over everything":          {mock.Entry{Content: `{"val`, RefusalText: "no", StopReason: "max_tokens"}, "provider.usage envelope.refusal", "", "envelope_refusal", false, []int{100}},
		"a stop sequence, validates: accept (§14.1)":                   {stopped("stop_sequence", good), "provider.usage", "", "", false, []int{100}},
		"a stop sequence, does not validate: truncation (§14.1)":       {stopped("stop_sequence", bad), moreRoom, "truncation", "", false, []int{100, 200}},
		"a stop sequence, does not parse: truncation (§14.1)":          {stopped("stop_sequence", broken), moreRoom, "truncation", "", false, []int{100, 200}},
		"anything else, validates: accept (§14.1)":                     {stopped("meteor", good), "provider.usage", "", "", false, []int{100}},
		"anything else, validates after lenient parse: accept (§14.1)": {stopped("meteor", fenced), "provider.usage envelope.recovery.applied", "", "", false, []int{100}},
		"anything else, does not validate: unknown (§14.1)":            {stopped("meteor", bad), again, "unknown", "", true, []int{100, 100}},
		"anything else, does not parse: unknown (§14.1)":               {stopped("meteor", broken), again, "unknown", "", true, []int{100, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := value(t, tc.answer, good)
			require.NoError(t, r.result.Interrupted)
			require.Equal(t, tc.events, r.names())
			require.Equal(t, tc.budget, budgetsOf(r))
			if tc.code != "" {
				require.Equal(t, tc.code, r.result.Err.Code)
				require.False(t, r.result.Err.Retryable)
				return
			}
			require.Nil(t, r.result.Err)
			require.JSONEq(t, `{"valid":true}`, string(r.result.Output.Ports["output"]))
			if tc.reason == "" {
				return
			}
			require.Contains(t, r.payload(t, wire.EventEnvelopeRetryAttempted), `"attempt":2,"reason":"`+tc.reason+`"`)
			first, second := r.spy.reqs[0], r.spy.reqs[1]
			require.Equal(t, first.System, second.System, "the schema hint is unchanged")
			require.Equal(t, first.Schema, second.Schema)
			require.Equal(t, first.Messages, second.Messages[:len(first.Messages)], "the prompt is unchanged")
			require.Len(t, second.Messages[len(first.Messages):], map[bool]int{true: 1}[tc.advice])
		})
	}
}

// An envelope of an unknown type or version is a type drift (OpenWOP envelope contract §14.2).
func TestTruthTable_AWrongTypeHasDrifted(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"unknown_envelope_kind", "unknown_schema_version"} {
		calls := 0
		r := envelope(t, refusing(&calls, code), mock.Entry{Content: `{"type":"vendor.x.other","payload":{}}`}, mock.Entry{Content: `{"a":1}`})
		require.Equal(t, "provider.usage envelope.retry.attempted provider.usage accept", r.names())
		require.Contains(t, r.payload(t, wire.EventEnvelopeRetryAttempted), `"attempt":2,"reason":"type-drift"`)
	}
}

// A retry after a truncation has no correction, even if the truncated attempt had one (OpenWOP
// envelope contract §14.2, §14.4).
func TestFragment_IsNotCarriedOverATruncation(t *testing.T) {
	t.Parallel()
	r := value(t, bad, cut, good)
	require.Nil(t, r.result.Err)
	prompt := r.spy.reqs[0].Messages
	require.Len(t, r.spy.reqs[1].Messages, len(prompt)+1, "the correction")
	require.Equal(t, prompt, r.spy.reqs[2].Messages, "only a larger budget")
	require.Equal(t, []int{100, 100, 200}, budgetsOf(r))
}

// A retry has the correction of the latest answer only.
func TestFragment_IsThatOfTheLatestAnswer(t *testing.T) {
	t.Parallel()
	r := value(t, broken, bad, good)
	require.Contains(t, string(r.spy.reqs[1].Messages[1].Content), "its JSON is broken at byte")
	require.Len(t, r.spy.reqs[2].Messages, 2)
	require.NotContains(t, string(r.spy.reqs[2].Messages[1].Content), "its JSON is broken at byte")
	require.Contains(t, string(r.spy.reqs[2].Messages[1].Content), "/properties/valid")
}

// For every keyword, the correction has no name or value that occurs only in the answer (OpenWOP
// envelope contract §14.4).
func TestFragment_NamesOnlyWhatTheSchemaHas(t *testing.T) {
	t.Parallel()
	const planted = "zzplanted"
	for name, tc := range map[string]struct{ schema, answer string }{
		"a type":               {`{"type":"object","properties":{"a":{"type":"integer"}}}`, `{"a":"` + planted + `"}`},
		"required":             {`{"type":"object","required":["steps"]}`, `{"` + planted + `":1}`},
		"another member":       {`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"` + planted + `":1}`},
		"no other member":      {`{"type":"object","properties":{"a":{}},"unevaluatedProperties":false}`, `{"` + planted + `":1}`},
		"a name":               {`{"type":"object","propertyNames":{"pattern":"^a"}}`, `{"` + planted + `":1}`},
		"a member of any name": {`{"type":"object","additionalProperties":{"type":"integer"}}`, `{"` + planted + `":"` + planted + `"}`},
		"a pattern of names":   {`{"type":"object","patternProperties":{"^zz":{"const":1}}}`, `{"` + planted + `":"` + planted + `"}`},
		"an enum":              {`{"type":"object","properties":{"a":{"enum":["x"]}}}`, `{"a":"` + planted + `"}`},
		"a const":              {`{"type":"object","properties":{"a":{"const":"x"}}}`, `{"a":"` + planted + `"}`},
		"a pattern":            {`{"type":"object","properties":{"a":{"pattern":"^x"}}}`, `{"a":"` + planted + `"}`},
		"a length":             {`{"type":"object","properties":{"a":{"maxLength":2}}}`, `{"a":"` + planted + `"}`},
		"items that are equal": {`{"type":"object","properties":{"a":{"uniqueItems":true}}}`, `{"a":["` + planted + `","` + planted + `"]}`},
		"a union":              {`{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"a":"` + planted + `"}`},
		"what is forbidden":    {`{"type":"object","not":{"required":["zzplanted"]}}`, `{"` + planted + `":1}`},
		"what depends on it":   {`{"type":"object","dependentRequired":{"a":["b"]}}`, `{"a":"` + planted + `"}`},
		"a member named twice": {`{"type":"object"}`, `{"` + planted + `":1,"` + planted + `":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := execute(t, node.TypeStructuredOutput, `{"outputSchema":`+tc.schema+`}`, acceptAll, mock.Entry{Content: tc.answer}, mock.Entry{Content: tc.answer}, mock.Entry{Content: tc.answer})
			require.NotNil(t, r.result.Err, r.names())
			for _, q := range r.spy.reqs[1:] {
				require.Len(t, q.Messages, 2)
				require.NotContains(t, string(q.Messages[1].Content), planted)
			}
			require.NotContains(t, r.payload(t, wire.EventEnvelopeRetryAttempted), planted)
			require.NotContains(t, r.payload(t, wire.EventEnvelopeRetryExhausted), planted)
			require.NotContains(t, r.result.Err.Message, planted)
		})
	}
}
