package tally_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/eventlog/tally"
)

// The keys beyond the limit are the same each time, so two requests have the same answer.
func TestMerge_CountsTheSameKeysAsOther(t *testing.T) {
	t.Parallel()
	merged := func() *tally.Tally {
		var sum tally.Tally
		for part := range 3 { // a part is within the limit, their sum is not
			var one tally.Tally
			for i := range 60 {
				name := fmt.Sprintf("k%d-%d", part, i)
				one.Code(name, 1)
				one.Of(tally.Model{Provider: "p", Model: name}).Calls++
				one.Refuse(tally.Refusal{Kind: name}, 1)
				one.Err(tally.ProviderError{Provider: "p", Code: name}, 1)
			}
			sum.Merge(&one)
		}
		return &sum
	}
	want := merged()
	require.NotZero(t, want.Codes[tally.Other])
	for range 20 {
		require.Equal(t, want, merged())
	}
}
