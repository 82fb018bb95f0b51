package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// budget has the limits of a host for attempts and output budgets.
type budget struct {
	attempts, multiplier, schemaRounds int
	// substituted means that the gate chose the fallback model.
	substituted bool
}

func (b budget) Kind(ctx context.Context, name string) (model.Kind, bool, error) {
	return schemas{}.Kind(ctx, name)
}

func (b budget) Limits(context.Context) (model.Limits, error) {
	return model.Limits{EnvelopesPerTurn: 5, SchemaRounds: b.schemaRounds, ClarificationRounds: 3}, nil
}

// of runs a node within the budget, with a script for its model.
func (b budget) of(t require.TestingT, ctx context.Context, typeID, config string, script ...mock.Entry) rig {
	scripts := newScripts()
	p := &spy{Provider: mock.New(scripts)}
	require.NoError(t, scripts.Program(ctx, "acme", "n", script))
	reg, err := provider.NewRegistry(p)
	require.NoError(t, err)
	loop := model.New(model.Config{
		MaxAttempts: b.attempts, Multiplier: b.multiplier, Timeout: 5 * time.Second,
		Defaults: model.Defaults{Provider: "mock", Model: "m", MaxTokens: 4000},
	}, model.Deps{
		Models: reg, Schemas: b, Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
		Clock: func() time.Time { return time.Unix(1_700_000_000, 0) },
	})
	task := model.Task{
		Tenant: "acme", RunID: "run_1", TypeID: typeID, Input: node.Input{
			NodeID: "n",
			Config: json.RawMessage(config),
			Ports:  map[string]json.RawMessage{"messages": json.RawMessage(`[{"role":"user","content":"hello"}]`)},
		},
	}
	if b.substituted {
		task.Fallback = fallback
	}
	j := &journal{accept: acceptAll}
	return rig{journal: j, spy: p, result: loop.Run(ctx, task, j)}
}

// fallback is the model of a substitution.
var fallback = &modelgate.Model{Provider: "mock", Model: "other"}

var (
	good = mock.Entry{Content: `{"valid":true}`}
	bad  = mock.Entry{Content: `{"valid":"no"}`}
	cut  = mock.Entry{Content: `{"val`, StopReason: "max_tokens"}
)

// OpenWOP envelope contract §14.3: at most N calls. Each call after the first is also a schema
// round.
func TestBudget_NIsTheSmallerOfAttemptsAndSchemaRounds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ attempts, rounds, want int }{
		{1, 2, 1}, {1, 0, 1}, {3, 2, 3}, {3, 0, 1}, {3, 1, 2}, {2, 9, 2}, {16, 15, 16}, {16, 99, 16}, {16, 4, 5},
	} {
		for reason, entry := range map[string]mock.Entry{"schema-violation": bad, "truncation": cut, "parse-error": {Content: `{"valid":`}} {
			t.Run(fmt.Sprintf("%d attempts, %d rounds, %s", tc.attempts, tc.rounds, reason), func(t *testing.T) {
				t.Parallel()
				r := budget{attempts: tc.attempts, multiplier: 2, schemaRounds: tc.rounds}.
					of(t, t.Context(), node.TypeStructuredOutput, valueConfig, slices.Repeat([]mock.Entry{entry}, 20)...)
				require.Len(t, r.spy.reqs, tc.want)
				require.Equal(t, tc.want-1, strings.Count(r.names(), "envelope.retry.attempted"))
				require.Equal(t, 1, strings.Count(r.names(), "envelope.retry.exhausted"))
				require.Contains(t, r.payload(t, wire.EventEnvelopeRetryExhausted), fmt.Sprintf(`"totalAttempts":%d,"finalReason":%q`, tc.want, reason))
				require.JSONEq(t, fmt.Sprintf(`{"kind":"schema","limit":%d,"observed":%d,"nodeId":"n"}`, tc.want-1, tc.want), r.payload(t, wire.EventCapBreached))
			})
		}
	}
}

// The output budget grows only after truncations (OpenWOP envelope contract §14.3).
func TestBudget_CompoundsOverTruncationsAlone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		multiplier int
		config     string
		script     []mock.Entry
		want       []int
	}{
		"the host's default":               {2, valueConfig, []mock.Entry{cut, cut, cut, good}, []int{4000, 8000, 16000, 32000}},
		"the node's own start":             {3, sized(10), []mock.Entry{cut, cut, good}, []int{10, 30, 90}},
		"a wrong answer between":           {2, sized(10), []mock.Entry{cut, bad, cut, good}, []int{10, 20, 20, 40}},
		"by eight":                         {8, sized(1), []mock.Entry{cut, cut, good}, []int{1, 8, 64}},
		"by one":                           {1, sized(7), []mock.Entry{cut, cut, good}, []int{7, 7, 7}},
		"so much that it would be no more": {8, sized(1 << 62), []mock.Entry{cut, cut, cut, good}, []int{1 << 30, 1 << 30, 1 << 30, 1 << 30}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := budget{
				attempts:     16,
				multiplier:   tc.multiplier,
				schemaRounds: 15,
			}.of(t, t.Context(), node.TypeStructuredOutput, tc.config, tc.script...)
			require.Nil(t, r.result.Err)
			require.Equal(t, tc.want, budgetsOf(r))
		})
	}
}

func sized(tokens int) string {
	return strings.Replace(valueConfig, `{`, fmt.Sprintf(`{"maxTokens":%d,`, tokens), 1)
}

func budgetsOf(r rig) (out []int) {
	for _, q := range r.spy.reqs {
		out = append(out, q.MaxTokens)
	}
	return out
}

// The largest settings do not overflow the budget.
func TestBudget_NeverOverflows(t *testing.T) {
	t.Parallel()
	r := budget{
		attempts:     16,
		multiplier:   8,
		schemaRounds: 15,
	}.of(t, t.Context(), node.TypeStructuredOutput, sized(1<<30), slices.Repeat([]mock.Entry{cut}, 16)...)
	require.Equal(t, "envelope_truncation_unrecoverable", r.result.Err.Code)
	require.Len(t, r.spy.reqs, 16)
	require.Positive(t, slices.Min(budgetsOf(r)))
	require.True(t, slices.IsSorted(budgetsOf(r)))
}

// A fallback model has no attempts of its own (OpenWOP envelope contract §14.3).
func TestBudget_IsTheSameForAFallbackModel(t *testing.T) {
	t.Parallel()
	for _, substituted := range []bool{false, true} {
		r := budget{attempts: 3, multiplier: 2, schemaRounds: 2, substituted: substituted}.
			of(t, t.Context(), node.TypeStructuredOutput, valueConfig, bad, cut, bad, good)
		require.Len(t, r.spy.reqs, 3)
		require.Equal(t, "envelope_invalid", r.result.Err.Code)
	}
}

// The legacy member retryOnInvalidJson, which fixtures of the protocol have, has no effect (OpenWOP
// envelope contract §14.3).
func TestBudget_TheOldSettingSwitchesNothingOff(t *testing.T) {
	t.Parallel()
	for _, old := range []string{"false", "true", "0"} {
		config := strings.Replace(valueConfig, `{`, `{"retryOnInvalidJson":`+old+`,`, 1)
		r := budget{
			attempts:     3,
			multiplier:   2,
			schemaRounds: 2,
		}.of(t, t.Context(), node.TypeStructuredOutput, config, mock.Entry{Content: `{"valid":`}, good)
		require.Nil(t, r.result.Err)
		require.Equal(t, "provider.usage envelope.retry.attempted provider.usage", r.names())
	}
}

// For any answers there are at most N calls, one usage per call, one retry event per call after the
// first, and at most one exhaustion.
func TestBudget_HoldsForAnyAnswers(t *testing.T) {
	t.Parallel()
	answers := []mock.Entry{
		good, bad, cut,
		{Content: `{"valid":`},
		{Content: "it is valid"},
		{StopReason: "safety"},
		{Content: "```\n{\"valid\":true}\n```"},
		{Content: `{"valid":true}`, StopReason: "length"},
		{Content: "{}", StopReason: "meteor"},
		{Content: "x", StopReason: "stop_sequence"},
		{},
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := budget{
			attempts:     rapid.IntRange(1, 16).Draw(rt, "attempts"),
			multiplier:   rapid.IntRange(1, 8).Draw(rt, "multiplier"),
			schemaRounds: rapid.IntRange(0, 20).Draw(rt, "rounds"),
		}
		r := b.of(rt, t.Context(), node.TypeStructuredOutput, valueConfig, rapid.SliceOfN(rapid.SampledFrom(answers), 0, 20).Draw(rt, "answers")...)
		n, names := min(b.attempts, b.schemaRounds+1), r.names()
		extra := strings.Count(names, "envelope.nlToFormat.engaged")
		calls := len(r.spy.reqs)
		require.LessOrEqual(rt, extra, 1)
		require.LessOrEqual(rt, calls, n+extra)
		require.Equal(rt, calls, strings.Count(names, "provider.usage"))
		require.Equal(rt, calls-1-extra, strings.Count(names, "envelope.retry.attempted"))
		exhausted := strings.Count(names, "envelope.retry.exhausted")
		require.LessOrEqual(rt, exhausted, 1)
		require.Equal(rt, exhausted, strings.Count(names, "cap.breached"))
		if refused := strings.Contains(names, "envelope.refusal"); refused {
			require.Zero(rt, exhausted)
			require.True(rt, strings.HasSuffix(names, "envelope.refusal"), "no event follows it")
		}
		require.Equal(rt, r.result.Err == nil, exhausted == 0 && !strings.Contains(names, "envelope.refusal"))
	})
}
