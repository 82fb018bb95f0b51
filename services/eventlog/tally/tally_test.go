package tally_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/eventlog/tally"
)

func TestPercentiles_AreWithinTheWidthOfABin(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []float64{3, 10, 20, 40} {
		var (
			parts [3]tally.Histogram
			all   []int64
		)
		for range 5000 {
			ms := int64(math.Exp2(random.Float64() * spread))
			parts[random.IntN(3)].Add(ms)
			all = append(all, ms)
		}
		slices.Sort(all)
		var sum tally.Histogram
		for _, p := range parts {
			sum.Merge(p)
		}
		require.EqualValues(t, len(all), sum.Count())
		got := sum.Percentiles(1, 50, 95, 99, 100)
		for i, rank := range []int{1, 50, 95, 99, 100} {
			want := all[(len(all)*rank+99)/100-1]
			require.InEpsilon(t, want, got[i], 0.0626, "p%d of 2^%g", rank, spread)
		}
	}
}

func TestPercentiles_OfFewAndExtremeDurations(t *testing.T) {
	t.Parallel()
	require.Nil(t, tally.Histogram{}.Percentiles(50))
	for _, ms := range []int64{0, 1, 7, 8, 15} {
		var h tally.Histogram
		h.Add(ms)
		require.Equal(t, []int64{ms, ms}, h.Percentiles(1, 99), "durations below 16 ms are exact")
	}
	var h tally.Histogram
	h.Add(-5)
	h.Add(math.MaxInt64)
	got := h.Percentiles(50, 100)
	require.Zero(t, got[0])
	require.InEpsilon(t, math.MaxInt64, got[1], 0.0626)
}

// sample is a tally that has everything.
func sample(n int64) tally.Tally {
	var t tally.Tally
	t.Created, t.Completed, t.Failed, t.Cancelled = n, n+1, n+2, n+3
	t.Code("run_timeout", n)
	t.Took.Add(n)
	m := t.Of(tally.Model{Provider: "p", Model: `a "model"`})
	*m = tally.Calls{Calls: n, Unknown: 1, Priced: n, Input: 3, Output: 4, Cost: tally.Dollars(0.1), Answers: n, First: 1, Saved: 1}
	m.Took.Add(100 * n)
	t.Refuse(tally.Refusal{Model: tally.Model{Provider: "p"}, Kind: "k", Gate: "payload", Reason: "type-drift"}, n)
	t.Err(tally.ProviderError{Provider: "p", Code: "rate_limited"}, n)
	return t
}

func TestTally_ComesBackFromItsStoredForm(t *testing.T) {
	t.Parallel()
	for _, want := range []tally.Tally{{}, sample(3)} {
		doc := tally.AppendStored(nil, &want)
		require.Equal(t, doc, tally.AppendStored(nil, &want))
		got, err := tally.ParseStored(doc)
		require.NoError(t, err)
		require.Equal(t, want, got)
		for n := range doc {
			_, err := tally.ParseStored(doc[:n])
			require.Error(t, err, "cut after %d bytes", n)
		}
		_, err = tally.ParseStored(append(doc, 0))
		require.Error(t, err)
	}
}

func TestParseStored_ReadsTheFormOfOlderVersions(t *testing.T) {
	t.Parallel()
	got, err := tally.ParseStored([]byte(`{"n":3,"ok":2,"bad":1,"codes":{"run_timeout":1},"took":[0,1,5,2],` +
		`"models":{"[\"p\",\"m\"]":{"n":4,"in":7,"usd":9,"took":[3,4]}},"refusals":{"[\"p\",\"m\",\"k\",\"payload\",\"\",\"r\"]":2},` +
		`"errors":{"[\"p\",\"c\"]":1}}`))
	require.NoError(t, err)
	want := tally.Tally{
		Runs: tally.Runs{
			Created: 3, Completed: 2, Failed: 1, Codes: map[string]int64{"run_timeout": 1}, Took: tally.Histogram{{At: 0, Count: 1}, {At: 5, Count: 2}},
		},
		Models: map[tally.Model]*tally.Calls{
			{Provider: "p", Model: "m"}: {Calls: 4, Input: 7, Cost: 9, Took: tally.Histogram{{At: 3, Count: 4}}},
		},
		Refusals: map[tally.Refusal]int64{{Model: tally.Model{Provider: "p", Model: "m"}, Kind: "k", Gate: "payload", Reason: "r"}: 2},
		Errors:   map[tally.ProviderError]int64{{Provider: "p", Code: "c"}: 1},
	}
	require.Equal(t, want, got)
	_, err = tally.ParseStored([]byte(`{"models":{"[\"p\"]":{}}}`))
	require.Error(t, err, "a key with too few names")
}

func FuzzParseStored(f *testing.F) {
	whole := sample(3)
	f.Add(tally.AppendStored(nil, &whole))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := tally.ParseStored(b)
		if err != nil || b[0] == '{' {
			return
		}
		again, err := tally.ParseStored(tally.AppendStored(nil, &got))
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func TestSum_PutsEachDeltaInOneBucketOfEachGrainOnce(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 23, 59, 59, 0, time.UTC)
	deltas := []tally.Delta{
		{Pos: 4, Tenant: "acme", WorkflowID: "a", At: at, Tally: sample(1)}, // counted before
		{Pos: 5, Tenant: "acme", WorkflowID: "a", At: at, Tally: sample(2)},
		{Pos: 6, Tenant: "acme", WorkflowID: "a", At: at.Add(time.Second), Tally: sample(3)},
		{Pos: 6, Tenant: "acme", WorkflowID: "b", At: at, Tally: sample(4)},
		{Pos: 7, Tenant: "other", WorkflowID: "a", At: at, Tally: sample(5)},
	}
	got := tally.Sum(deltas, 4)
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Unix()
	require.Len(t, got, 12)
	require.EqualValues(t, 2, got[tally.Bucket{Tenant: "acme", Grain: tally.Daily, At: day, WorkflowID: "a"}].Created)
	require.EqualValues(t, 3, got[tally.Bucket{Tenant: "acme", Grain: tally.Daily, At: day + 86400, WorkflowID: "a"}].Created)
	require.EqualValues(t, 4, got[tally.Bucket{Tenant: "acme", Grain: tally.Fine, At: day + 86100, WorkflowID: "b"}].Created)
	require.EqualValues(t, 5, got[tally.Bucket{Tenant: "other", Grain: tally.Hourly, At: day + 82800, WorkflowID: "a"}].Created)
	require.EqualValues(t, 5, deltas[4].Tally.Created, "the deltas stay as they are")
	require.EqualValues(t, -86400, tally.Daily.Start(time.Unix(-1, 0)))
}

func TestTally_LimitsTheNamesThatItCountsApart(t *testing.T) {
	t.Parallel()
	var got tally.Tally
	for n := range 200 {
		name := fmt.Sprint(n)
		got.Code(name, 1)
		got.Of(tally.Model{Provider: name}).Calls++
		got.Refuse(tally.Refusal{Kind: name, Gate: "payload", Reason: name}, 1)
		got.Err(tally.ProviderError{Code: name}, 1)
	}
	require.Len(t, got.Codes, 65)
	require.EqualValues(t, 136, got.Codes[tally.Other])
	require.Len(t, got.Models, 65)
	require.Len(t, got.Refusals, 65)
	require.Len(t, got.Errors, 65)
}

func TestDollars_IsExactAndNeverNegative(t *testing.T) {
	t.Parallel()
	for usd, want := range map[float64]tally.Nanos{
		0.0012: 1_200_000, -1: 0, math.Inf(1): math.MaxInt64, math.NaN(): 0, 1e12: math.MaxInt64,
	} {
		require.Equal(t, want, tally.Dollars(usd), "%g", usd)
	}
}
