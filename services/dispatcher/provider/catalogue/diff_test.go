package catalogue_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

func lines(changes []catalogue.Change) []string {
	out := []string{}
	for _, c := range changes {
		out = append(out, c.String())
	}
	return out
}

func TestDiff_NamesWhatIsDifferent(t *testing.T) {
	t.Parallel()
	before := parsed(t, `{"version":1,"asOf":"2026-01-31","providers":{"acme":{"name":"Acme"}},"models":[
		{"provider":"acme","model":"a","prices":{"input":1,"output":5},"capabilities":["reasoning"]},{"provider":"acme","model":"b"},{"provider":"acme","model":"c","prices":{}}],
		"rules":[{"match":"x*"},{"match":"y*"},{"match":"z*","provider":"lab"}]}`)
	after := parsed(t, `{"version":1,"asOf":"2026-02-28","providers":{"acme":{"name":"Acme","note":"n"},"lab":{"name":"Lab"}},"models":[
		{"provider":"acme","model":"a","prices":{"input":1.50,"cacheRead":0.1},"capabilities":["reasoning","vision-input"]},{"provider":"acme","model":"c"},{"provider":"lab","model":"d"}],
		"rules":[{"match":"y*"},{"match":"new"},{"match":"x*","lacks":["reasoning"]}]}`)
	require.Equal(t, []string{
		`acme/a: capabilities: ["reasoning"] -> ["reasoning","vision-input"]`,
		`acme/a: prices.cacheRead: nothing -> 0.1`,
		`acme/a: prices.input: 1 -> 1.5`,
		`acme/a: prices.output: 5 -> nothing`,
		`acme/b: removed`,
		`acme/c: prices: {} -> nothing`,
		`catalogue: asOf: "2026-01-31" -> "2026-02-28"`,
		`lab/d: added`,
		`provider acme: note: nothing -> "n"`,
		`provider lab: added`,
		`rule new: added`,
		`rule x*: lacks: nothing -> ["reasoning"]`,
		`rule z* of lab: removed`,
		`rules: order: ["rule x*","rule y*"] -> ["rule y*","rule x*"]`,
	}, lines(catalogue.Diff(before, after)))
	require.Empty(t, catalogue.Diff(before, before))
	require.Empty(t, catalogue.Diff(catalogue.Builtin(), catalogue.Builtin()))
}

// drawn returns a random valid document. It uses few names, so that two documents often overlap.
func drawn(r *rapid.T, label string) string {
	few := func(ids ...string) []string {
		return slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(rapid.SampledFrom(ids), 0, len(ids)).Draw(r, label))))
	}
	traits := func(m map[string]any) map[string]any {
		if caps := few("reasoning", "vision-input", "x-host-acme-dance"); len(caps) > 0 {
			m["capabilities"] = caps
		}
		if rapid.Bool().Draw(r, label+" priced") {
			m["prices"] = map[string]any{"input": rapid.IntRange(0, 2).Draw(r, label+" price")}
		}
		return m
	}
	models, rules := []any{}, []any{}
	for _, n := range few("a", "b", "c") {
		models = append(models, traits(map[string]any{"provider": "acme", "model": n}))
	}
	for _, n := range rapid.Permutation(few("a*", "b*", "c*")).Draw(r, label+" rules") {
		rules = append(rules, traits(map[string]any{"match": n}))
	}
	b, err := json.Marshal(map[string]any{
		"version": 1,
		"asOf":    rapid.SampledFrom([]string{"2026-01-31", "2026-02-28"}).Draw(r, label+" day"),
		"models":  models,
		"rules":   rules,
	})
	require.NoError(r, err)
	return string(b)
}

func TestDigest_IsThatOfTheContent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		one, err := catalogue.Parse([]byte(drawn(r, "one")))
		require.NoError(r, err)
		two, err := catalogue.Parse([]byte(drawn(r, "two")))
		require.NoError(r, err)
		require.Equal(r, len(catalogue.Diff(one, two)) == 0, one.Digest() == two.Digest(), "%v", catalogue.Diff(one, two))
		require.Len(r, catalogue.Diff(two, one), len(catalogue.Diff(one, two)))
	})
}

func TestDigest_DoesNotDependOnHowItIsWritten(t *testing.T) {
	t.Parallel()
	want := parsed(t, small).Digest()
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", want)
	var dense, indented bytes.Buffer
	require.NoError(t, json.Compact(&dense, []byte(small)))
	require.NoError(t, json.Indent(&indented, []byte(small), "", "\t"))
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(small), &doc))
	models := doc["models"].([]any)
	slices.Reverse(models)
	slices.Reverse(models[1].(map[string]any)["capabilities"].([]any))
	shuffled, err := json.Marshal(doc)
	require.NoError(t, err)
	for name, same := range map[string]string{
		"dense": dense.String(), "indented": indented.String(), "shuffled": string(shuffled),
		"numbers": strings.NewReplacer("1.25", "1.250", `"output":10,`, `"output":1.0e1,`).Replace(small),
		"escapes": strings.Replace(small, `"note":"n"`, `"note":"\u006e"`, 1),
	} {
		require.Equal(t, want, parsed(t, same).Digest(), name)
	}
	for name, other := range map[string]string{
		"price":    strings.Replace(small, "1.25", "1.251", 1),
		"note":     strings.Replace(small, `"note":"n"`, `"note":"m"`, 1),
		"day":      strings.Replace(small, "2026-01-31", "2026-01-30", 1),
		"left out": strings.Replace(small, `"sampling":false,`, "", 1),
	} {
		require.NotEqual(t, want, parsed(t, other).Digest(), name)
	}
}

func TestNear_SuggestsWhatWasMeant(t *testing.T) {
	t.Parallel()
	c := catalogue.Builtin()
	for asked, want := range map[[2]string]string{
		{"openai", "gpt-4-o"}:             "openai/gpt-4o",
		{"openai", "GPT-4o"}:              "openai/gpt-4o",
		{"anthropic", "claude-opus-5.5"}:  "anthropic/claude-opus-5-5",
		{"antropic", "claude-sonnet-5-5"}: "anthropic/claude-sonnet-5-5",
		{"google", "gemini-3.8-flash"}:    "gemini/gemini-3.8-flash",
		{"openai", "gpt-4o-2024-08-05"}:   "openai/gpt-4o-2024-08-06",
		{"openai", "claude-haiku-4-5"}:    "anthropic/claude-haiku-4-5",
		{"sample", "sample"}:              "sample/sample-1",
	} {
		got := c.Near(asked[0], asked[1], 3)
		require.NotEmpty(t, got, asked)
		require.LessOrEqual(t, len(got), 3)
		require.Equal(t, want, got[0], asked)
	}
	require.Empty(t, c.Near("lab", "homegrown", 3))
}

// An accepted document survives a round trip; the error of a rejected one names a path.
func FuzzParse(f *testing.F) {
	for _, doc := range []string{
		small, base, `{"version":1,"asOf":"2026-01-31"}`, `{}`, `[]`, "\xef\xbb\xbf{}",
		strings.Replace(small, "1.25", "1e-7", 1), strings.Replace(small, "1.25", "1e400", 1),
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		c, err := catalogue.Parse(doc)
		if err != nil {
			require.Nil(t, c)
			wrong, ok := err.(*catalogue.ParseError)
			require.True(t, ok)
			require.NotEmpty(t, wrong.Problems)
			return
		}
		written, err := json.Marshal(map[string]any{
			"version":   catalogue.Version,
			"asOf":      c.AsOf(),
			"providers": c.Providers(),
			"models":    append([]catalogue.Entry{}, c.Entries()...),
			"rules":     append([]catalogue.Rule{}, c.Rules()...),
		})
		require.NoError(t, err)
		written = bytes.Replace(written, []byte(`"providers":null`), []byte(`"providers":{}`), 1)
		again, err := catalogue.Parse(written)
		require.NoError(t, err, string(written))
		require.Equal(t, c.Digest(), again.Digest())
		require.Empty(t, catalogue.Diff(c, again))
		for _, e := range c.Entries() {
			got, ok := c.Lookup(e.Provider, e.Model)
			require.True(t, ok)
			require.Equal(t, e, got)
			merged, ok := catalogue.Builtin().With(c).Lookup(e.Provider, e.Model)
			require.True(t, ok)
			require.Equal(t, e, merged)
			if usd, ok := e.Cost(used(1000, 10, 5, 5)); ok {
				require.GreaterOrEqual(t, usd, 0.0)
			}
		}
	})
}
