package suggest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/suggest"
)

func TestNames_ReturnsTheClosestFirst(t *testing.T) {
	t.Parallel()
	known := []string{"envelope_invalid", "envelope_refusal", "run_not_found", "run_terminal", "conflict"}
	for unknown, want := range map[string][]string{
		"envelope_invald": {"envelope_invalid"},
		"RUN_NOT_FOUND":   {"run_not_found"},
		"refusal":         {"envelope_refusal"},
		"run_notfound":    {"run_not_found"},
		"xyzzyxyzzy":      {},
		"":                {},
	} {
		require.Equal(t, want, suggest.Names(unknown, known, 2), unknown)
	}
}

func TestParts_FindsNamesByTheirWords(t *testing.T) {
	t.Parallel()
	known := []string{"envelope_contract_violation", "envelope_refusal", "node.started", "run_not_found"}
	for unknown, want := range map[string][]string{
		"envelop_contract": {"envelope_contract_violation"},
		"contract":         {"envelope_contract_violation"},
		"nod.started":      {"node.started"},
		"not-foud":         {"run_not_found"},
		"envelope":         {"envelope_contract_violation", "envelope_refusal"},
		"xyzzy_contracts_": {},
		"":                 {},
	} {
		require.ElementsMatch(t, want, suggest.Parts(unknown, known, 2), unknown)
	}
}

func TestSynonym_IsTheFirstKnownName(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		word  string
		known []string
		want  string
	}{
		{"integer", []string{"string", "number"}, "number"},
		{"text", []string{"prompt", "system"}, "prompt"},
		{"text", []string{"number"}, ""},
		{"unheard", []string{"number"}, ""},
	} {
		require.Equal(t, tc.want, suggest.Synonym(tc.word, tc.known), tc.word)
	}
}

func TestDistance_CountsChanges(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"same", "same", 0}} {
		require.Equal(t, tc.want, suggest.Distance(tc.a, tc.b))
	}
}
