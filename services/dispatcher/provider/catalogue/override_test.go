package catalogue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

const base = `{"version":1,"asOf":"2026-01-31","providers":{"acme":{"name":"Acme","note":"old"}},"models":[
	{"provider":"acme","model":"big","aliases":["large","latest"],"snapshots":["big-1"],"capabilities":["reasoning"],"note":"of the base"},
	{"provider":"acme","model":"tiny"},
	{"provider":"acme","model":"gone"}],
	"rules":[{"match":"home-*","capabilities":["reasoning"]},{"match":"home-7b","capabilities":["vision-input"]},{"match":"*","provider":"acme","lacks":["audio-input"]}]}`

func over(t *testing.T, members string) *catalogue.Catalogue {
	t.Helper()
	return parsed(t, base).With(parsed(t, `{"version":1,"asOf":"2026-02-28",`+members+`}`))
}

func TestWith_ReplacesAnEntryWhole(t *testing.T) {
	t.Parallel()
	c := over(t, `"models":[{"provider":"acme","model":"big","contextTokens":1000},{"provider":"lab","model":"new"}]`)
	require.Equal(t, "2026-02-28", c.AsOf())
	require.Len(t, c.Entries(), 4)
	e, ok := c.Lookup("acme", "big")
	require.True(t, ok)
	require.Equal(t, 1000, e.ContextTokens)
	require.Empty(t, e.Capabilities, "nothing of the old entry is left")
	require.Empty(t, e.Note)
	e, ok = c.Lookup("acme", "large")
	require.True(t, ok)
	require.Equal(t, "*", e.Rule, "the alias went with it")
	_, ok = c.Lookup("lab", "new")
	require.True(t, ok)
}

func TestWith_GivesTheOverrideTheNamesItClaims(t *testing.T) {
	t.Parallel()
	c := over(t, `"models":[{"provider":"acme","model":"large"},{"provider":"acme","model":"huge","aliases":["latest","gone"],"snapshots":["big-1"]}]`)
	for n, want := range map[string]string{
		"large":  "large",
		"latest": "huge",
		"big-1":  "huge",
		"gone":   "huge",
		"huge":   "huge",
		"big":    "big",
		"tiny":   "tiny",
	} {
		e, ok := c.Lookup("acme", n)
		require.True(t, ok, n)
		require.Equal(t, want, e.Model, n)
	}
	big, _ := c.Lookup("acme", "big")
	require.Empty(t, big.Aliases)
	require.Empty(t, big.Snapshots)
	require.Len(t, c.Entries(), 4, "gone is no model of its own any more")
}

func TestWith_PutsItsRulesFirst(t *testing.T) {
	t.Parallel()
	has := func(c *catalogue.Catalogue, model, id string) [2]bool {
		has, known := c.Has(modelgate.Model{Provider: "lab", Model: model}, id)
		return [2]bool{has, known}
	}
	before := parsed(t, base)
	require.Equal(t, [2]bool{true, true}, has(before, "home-7b", "reasoning"), "the first that matches speaks, though a later one is closer")
	require.Equal(t, [2]bool{false, false}, has(before, "home-7b", "vision-input"))

	c := over(t, `"rules":[{"match":"*-7b","capabilities":["audio-input"]},{"match":"home-*","lacks":["reasoning"]}]`)
	require.Equal(t, [2]bool{true, true}, has(c, "home-7b", "audio-input"))
	require.Equal(t, [2]bool{false, false}, has(c, "home-7b", "reasoning"))
	require.Equal(t, [2]bool{false, true}, has(c, "home-70b", "reasoning"), "the rule of the same pattern is replaced")
	require.Len(t, c.Rules(), 4)
}

func TestWith_ListsProvidersForWhichRulesDoNotSpeak(t *testing.T) {
	t.Parallel()
	c := over(t, `"providers":{"lab":{"name":"The lab"},"acme":{"name":"Acme","note":"new"}}`)
	_, ok := c.Lookup("lab", "home-7b")
	require.False(t, ok)
	e, ok := c.Lookup("acme", "unheard-of")
	require.True(t, ok, "but a rule that names the provider does")
	require.Equal(t, "*", e.Rule)
	require.Equal(t, "new", c.Providers()["acme"].Note)
}

func TestWith_NothingChangesNothing(t *testing.T) {
	t.Parallel()
	c := parsed(t, base)
	require.Equal(t, c.Digest(), c.With(nil).Digest())
	require.Equal(t, c.Digest(), c.With(parsed(t, `{"version":1,"asOf":"2025-01-01"}`)).Digest(), "the later day holds")
	require.Equal(t, c.Digest(), c.With(c).Digest())
}

func TestLookup_TellsUnknownFromHasNot(t *testing.T) {
	t.Parallel()
	c := parsed(t, `{"version":1,"asOf":"2026-01-31","providers":{"acme":{"name":"Acme"}},"models":[
		{"provider":"acme","model":"m","capabilities":["reasoning"],"unsure":["audio-input"]}],
		"rules":[{"match":"long*","capabilities":["long-context"],"contextTokens":300000},{"match":"short*","contextTokens":8000},{"match":"home*","lacks":["vision-input"]}]}`)
	for _, tc := range []struct {
		provider, model, id string
		has, known          bool
	}{
		{"acme", "m", "reasoning", true, true},
		{"acme", "m", "vision-input", false, true},
		{"acme", "m", "audio-input", false, false},
		{"acme", "m", "x-host-acme-dance", false, true},
		{"acme", "M", "reasoning", false, false},
		{"acme", "home", "vision-input", false, false},
		{"lab", "home", "vision-input", false, true},
		{"lab", "home", "reasoning", false, false},
		{"lab", "home", "x-host-acme-dance", false, true},
		{"lab", "long-1", "long-context", true, true},
		{"lab", "short-1", "long-context", false, true},
		{"lab", "other", "reasoning", false, false},
	} {
		has, known := c.Has(modelgate.Model{Provider: tc.provider, Model: tc.model}, tc.id)
		require.Equal(t, [2]bool{tc.has, tc.known}, [2]bool{has, known}, "%+v", tc)
	}
}
