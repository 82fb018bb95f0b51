package catalogue_test

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

func priced(t *testing.T, prices string) catalogue.Entry {
	t.Helper()
	c := parsed(t, `{"version":1,"asOf":"2026-01-31","models":[{"provider":"acme","model":"m","prices":`+prices+`}]}`)
	return c.Entries()[0]
}

func used(in, out, read, write int) provider.Usage {
	return provider.Usage{InputTokens: in, OutputTokens: out, CacheReadTokens: read, CacheWriteTokens: write, Known: true}
}

// apart is the usage of a vendor that counts cached tokens separately from input.
func apart(u provider.Usage) provider.Usage {
	u.CacheApart = true
	return u
}

func TestCost_PricesEachKindOfTokenApart(t *testing.T) {
	t.Parallel()
	full := `{"input":2,"output":10,"cacheRead":0.1,"cacheWrite":2.5,"long":{"over":1000,"input":4,"output":15}}`
	for name, tc := range map[string]struct {
		prices string
		usage  provider.Usage
		usd    float64
		ok     bool
	}{
		"input and output":           {full, used(100, 50, 0, 0), 0.0007, true},
		"the cache is part of input": {full, used(1000, 0, 600, 300), 0.00101, true},
		"the cache apart from input": {full, apart(used(100, 0, 600, 300)), 0.00101, true},
		"a long call with its cache": {
			`{"input":2,"long":{"over":1000,"input":4,"cacheRead":1}}`, apart(used(1, 0, 1000, 0)), 0.001004,
			true,
		},
		"all of it from the cache":   {full, used(1000, 0, 1000, 0), 0.0001, true},
		"the longest short call":     {full, used(1000, 10, 0, 0), 0.0021, true},
		"a long call, all of it":     {full, used(1001, 10, 0, 0), 0.004154, true},
		"a long call's unknown rate": {full, used(1001, 10, 1, 0), 0, false},
		"nothing used":               {full, used(0, 0, 0, 0), 0, true},
		"free of charge":             {`{"input":0,"output":0}`, used(100, 100, 0, 0), 0, true},
		"rounded up":                 {`{"input":0.5}`, used(1, 0, 0, 0), 0.000001, true},
		"rounded down":               {`{"input":0.499999}`, used(1, 0, 0, 0), 0, true},
		"rounded once, not each":     {`{"input":0.3,"output":0.3}`, used(1, 1, 0, 0), 0.000001, true},
		"a million at a third":       {`{"input":0.333333}`, used(1_000_000, 0, 0, 0), 0.333333, true},
		"no rate for output":         {`{"input":1}`, used(1, 1, 0, 0), 0, false},
		"no rate that is needed":     {`{"input":1}`, used(1, 0, 0, 0), 0.000001, true},
		"no rate for cache reads":    {`{"input":1,"output":1,"cacheWrite":1}`, used(9, 0, 1, 0), 0, false},
		"no rate for cache writes":   {`{"input":1,"output":1,"cacheRead":1}`, used(9, 0, 0, 1), 0, false},
		"more cached than asked":     {full, used(1, 0, 2, 0), 0, false},
		"fewer than none":            {full, used(1, -1, 0, 0), 0, false},
		"usage that is unknown":      {full, provider.Usage{InputTokens: 1}, 0, false},
		"more than a double can count": {
			`{"input":1000000}`, used(9_007_199_254_740_993, 0, 0, 0), 9_007_199_254_740_993, true,
		},
	} {
		usd, ok := priced(t, tc.prices).Cost(tc.usage)
		require.Equal(t, tc.ok, ok, name)
		require.Equal(t, tc.usd, usd, name)
	}
	_, ok := catalogue.Entry{}.Cost(used(1, 1, 0, 0))
	require.False(t, ok, "no prices at all")
}

// The cost, written with six decimals, equals that of exact arithmetic.
func TestCost_IsExactToTheMicroDollar(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		micros := rapid.Int64Range(0, 200_000_000)
		in, out, read := catalogue.Rate(micros.Draw(r, "in")), catalogue.Rate(micros.Draw(r, "out")), catalogue.Rate(micros.Draw(r, "read"))
		e := catalogue.Entry{Traits: catalogue.Traits{Prices: &catalogue.Prices{Rates: catalogue.Rates{Input: &in, Output: &out, CacheRead: &read}}}}
		tokens := rapid.IntRange(0, 2_000_000)
		fresh, cached, answer := tokens.Draw(r, "fresh"), tokens.Draw(r, "cached"), tokens.Draw(r, "answer")
		usd, ok := e.Cost(used(fresh+cached, answer, cached, 0))
		require.True(r, ok)
		want := new(big.Rat)
		for _, p := range []struct {
			tokens int
			rate   catalogue.Rate
		}{{fresh, in}, {cached, read}, {answer, out}} {
			rate, _ := new(big.Rat).SetString(p.rate.String())
			want.Add(want, rate.Mul(rate, big.NewRat(int64(p.tokens), 1_000_000)))
		}
		require.Equal(r, want.FloatString(6), new(big.Rat).SetFloat64(usd).FloatString(6))
	})
}

func TestOn_ChoosesThePricesOfTheDay(t *testing.T) {
	t.Parallel()
	e := priced(t, `{"input":1,"until":"2026-06-30","then":{"input":2,"until":"2026-12-31"}}`)
	for at, want := range map[string]struct {
		usd float64
		ok  bool
	}{
		"2026-01-01T00:00:00Z":      {1, true},
		"2026-06-30T23:59:59Z":      {1, true},
		"2026-07-01T00:00:00Z":      {2, true},
		"2026-07-01T01:00:00+02:00": {1, true},
		"2026-12-31T12:00:00Z":      {2, true},
		"2027-01-01T00:00:00Z":      {0, false},
	} {
		now, err := time.Parse(time.RFC3339, at)
		require.NoError(t, err)
		usd, ok := e.At(now).Cost(used(1_000_000, 0, 0, 0))
		require.Equal(t, want.ok, ok, at)
		require.Equal(t, want.usd, usd, at)
	}
	require.Equal(t, "1", e.Prices.Input.String(), "the entry itself is as it was")
}

func TestRate_StaysWhatWasWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1.25":     "1.25",
		"10":       "10",
		"10.0":     "10",
		"0":        "0",
		"0.000001": "0.000001",
		"1e-6":     "0.000001",
		"1E2":      "100",
		"0.10":     "0.1",
	} {
		var r catalogue.Rate
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
		require.Equal(t, want, r.String())
		b, err := json.Marshal(r)
		require.NoError(t, err)
		require.Equal(t, want, string(b))
	}
	for _, text := range []string{`"1"`, `-1`, `0.0000001`, `1000001`, `true`, `{}`} {
		var r catalogue.Rate
		require.Error(t, json.Unmarshal([]byte(text), &r), text)
	}
}
