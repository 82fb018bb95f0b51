package model_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// OpenWOP envelope contract §14.1: the stop reason is max_tokens for every exhausted budget,
// whatever the vendor's name for it, and stop_sequence for a stop sequence.
func TestTruncated_SaysWhyAndHowMuch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer mock.Entry
		want   string
	}{
		"max_tokens":                     {mock.Entry{Content: "{", StopReason: "max_tokens", OutputTokens: 7}, `"stopReason":"max_tokens","partialPayloadAvailable":false,"outputTokenCount":7`},
		"length":                         {mock.Entry{Content: "{", StopReason: "length"}, `"stopReason":"max_tokens","partialPayloadAvailable":false,"outputTokenCount":50`},
		"length, whole":                  {stopped("length", good), `"stopReason":"max_tokens","partialPayloadAvailable":true,"outputTokenCount":50`},
		"a stop sequence":                {mock.Entry{Content: "{", StopReason: "stop_sequence"}, `"stopReason":"stop_sequence","partialPayloadAvailable":false,"outputTokenCount":50`},
		"a stop sequence, a wrong value": {stopped("stop_sequence", bad), `"stopReason":"stop_sequence","partialPayloadAvailable":true,"outputTokenCount":50`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.JSONEq(t, `{"nodeId":"n","provider":"mock","model":"m",`+tc.want+`}`, value(t, tc.answer, good).payload(t, wire.EventEnvelopeTruncated))
		})
	}
}

// The same text is recovered in the same way, and the event contains none of it (OpenWOP envelope
// contract §14.6).
func TestRecovery_IsDeterministicAndCarriesNoText(t *testing.T) {
	t.Parallel()
	around := rapid.StringMatching(`[zq{}\[\]" \n]{0,24}`)
	rapid.Check(t, func(rt *rapid.T) {
		doc := rapid.SampledFrom([]string{`{"valid":true}`, "```json\n{\"valid\":true}\n```", "```\n[1]\n``` ```\n{\"valid\":false}\n```"}).Draw(rt, "document")
		text := around.Draw(rt, "before") + doc + around.Draw(rt, "after")
		b := budget{attempts: 1, multiplier: 2, schemaRounds: 2}
		one := b.of(rt, t.Context(), node.TypeStructuredOutput, valueConfig, mock.Entry{Content: text})
		other := b.of(rt, t.Context(), node.TypeStructuredOutput, valueConfig, mock.Entry{Content: text})
		require.Equal(rt, one.result.Drafts, other.result.Drafts)
		for _, d := range append(one.drafts, one.result.Drafts...) {
			if d.Type != wire.EventEnvelopeRecovery {
				continue
			}
			var p map[string]any
			require.NoError(rt, json.Unmarshal(d.Payload, &p))
			require.Len(rt, p, 3)
			require.Contains(rt, []any{"markdown-fence", "brace-walker", "custom"}, p["path"])
			at, ok := p["byteOffset"].(float64)
			require.True(rt, ok)
			var doc any
			require.NoError(rt, json.NewDecoder(strings.NewReader(text[int(at):])).Decode(&doc), "the byte where the JSON starts")
		}
	})
}

// replies are the results of a provider's calls, in order.
type replies []func() (provider.Result, error)

func (*replies) ID() string { return "mock" }

func (r *replies) Call(context.Context, provider.Request, func(provider.Delta) error) (provider.Result, error) {
	next := (*r)[0]
	*r = (*r)[1:]
	return next()
}

func says(text string, u provider.Usage) func() (provider.Result, error) {
	return func() (provider.Result, error) {
		return provider.Result{Text: text, Stop: provider.StopClean, RawStop: "stop", Model: "m", Usage: u}, nil
	}
}

func breaks() (provider.Result, error) {
	return provider.Result{}, &provider.Error{Code: provider.CodeUnavailable, Message: "gone", Retryable: true}
}

// answers runs a node with these replies and the model's catalogue entry.
func answers(t *testing.T, traitsOf string, r replies) rig {
	t.Helper()
	reg, err := provider.NewRegistry(&r)
	require.NoError(t, err)
	deps := model.Deps{Models: reg, Schemas: schemas{}, Clock: time.Now, Catalogue: traits(t, traitsOf)}
	loop := model.New(model.Config{
		MaxAttempts: 3,
		Multiplier:  2,
		Timeout:     time.Minute,
		Defaults:    model.Defaults{Provider: "mock", Model: "m", MaxTokens: 100},
	}, deps)
	j := &journal{}
	res := loop.Run(t.Context(), model.Task{
		Tenant: "acme",
		TypeID: node.TypeStructuredOutput,
		Input:  node.Input{NodeID: "n", Config: json.RawMessage(valueConfig)},
	}, j)
	return rig{journal: j, result: res}
}

// OpenWOP envelope contract §19.1: each answered call has one usage event. A call that fails in
// transport has none, and earlier ones remain.
func TestUsage_IsToldForEachCallThatWasAnswered(t *testing.T) {
	t.Parallel()
	known := provider.Usage{InputTokens: 3, OutputTokens: 4, TotalTokens: 7, Known: true}
	r := answers(t, `"capabilities":[]`, replies{says(`{}`, known), breaks})
	require.Equal(t, "provider.usage envelope.retry.attempted", r.names())
	require.Equal(t, "provider_unavailable", r.result.Err.Code)
	require.True(t, r.result.Err.Retryable, "that is the node's policy to decide")
	require.JSONEq(t, `{"provider":"mock","model":"m","inputTokens":3,"outputTokens":4,"totalTokens":7,"nodeId":"n"}`, r.payload(t, wire.EventProviderUsage))

	r = answers(t, `"capabilities":[]`, replies{says(`{"valid":true}`, provider.Usage{})})
	require.JSONEq(t, `{"provider":"mock","model":"m","inputTokens":0,"outputTokens":0,"nodeId":"n"}`, r.payload(t, wire.EventProviderUsage), "without reported usage there are no counts")
}

// A cost is recorded only if every rate is known, and never as 0 (OpenWOP envelope contract §19.1).
func TestUsage_TellsNoCostThatIsNotKnown(t *testing.T) {
	t.Parallel()
	known := provider.Usage{InputTokens: 1_000_000, OutputTokens: 1_000_000, TotalTokens: 2_000_000, Known: true}
	cached := known
	cached.CacheReadTokens = 10
	for name, tc := range map[string]struct {
		traits string
		usage  provider.Usage
		cost   string
	}{
		"all is known":             {`"prices":{"input":2,"output":3}`, known, `"costEstimateUsd":5,"currency":"USD"`},
		"it is free":               {`"prices":{"input":0,"output":0}`, known, `"costEstimateUsd":0,"currency":"USD"`},
		"no prices":                {`"capabilities":[]`, known, ""},
		"no price of a part of it": {`"prices":{"input":2,"output":3}`, cached, ""},
		"no usage":                 {`"prices":{"input":2,"output":3}`, provider.Usage{}, ""},
		"counts that cannot be: more cached than there was": {`"prices":{"input":2,"output":3,"cacheRead":1}`, provider.Usage{InputTokens: 1, CacheReadTokens: 9, Known: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payload := answers(t, tc.traits, replies{says(`{"valid":true}`, tc.usage)}).payload(t, wire.EventProviderUsage)
			if tc.cost == "" {
				require.NotContains(t, payload, "cost")
				require.NotContains(t, payload, "currency")
				return
			}
			require.Contains(t, payload, tc.cost)
		})
	}
}

// Usage events contain nothing about the key (OpenWOP envelope contract §19.1).
func TestUsage_SaysNothingOfTheKey(t *testing.T) {
	t.Parallel()
	r := value(t, mock.Entry{Content: "planted-answer"}, good)
	for _, d := range append(append([]wire.Draft(nil), r.drafts...), r.result.Drafts...) {
		if d.Type != wire.EventProviderUsage {
			continue
		}
		var p map[string]any
		require.NoError(t, json.Unmarshal(d.Payload, &p))
		for name := range p {
			require.Contains(t, strings.Fields("provider model inputTokens outputTokens totalTokens costEstimateUsd currency cacheReadTokens cacheWriteTokens nodeId"), name)
		}
		require.NotContains(t, string(d.Payload), "planted")
	}
}
