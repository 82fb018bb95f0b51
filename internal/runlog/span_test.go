package runlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/internal/runlog"
)

func TestExcept_KeepsWhatIsInNoOther(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		spans, others, want []runlog.Span
	}{
		{nil, nil, nil},
		{[]runlog.Span{{1, 9}}, nil, []runlog.Span{{1, 9}}},
		{[]runlog.Span{{1, 9}}, []runlog.Span{{1, 9}}, nil},
		{[]runlog.Span{{1, 9}}, []runlog.Span{{7, 9}, {1, 2}, {4, 4}}, []runlog.Span{{3, 3}, {5, 6}}},
		{[]runlog.Span{{3, 4}, {8, 9}}, []runlog.Span{{1, 8}}, []runlog.Span{{9, 9}}},
		{[]runlog.Span{{3, 4}, {8, 9}}, []runlog.Span{{5, 7}, {10, 12}}, []runlog.Span{{3, 4}, {8, 9}}},
	} {
		require.Equal(t, tt.want, runlog.Except(tt.spans, tt.others))
	}
}

func TestExcept_EqualsTheDifferenceOfSets(t *testing.T) {
	t.Parallel()
	disjoint := func(rt *rapid.T, name string) (spans []runlog.Span, set map[uint64]bool) {
		set = map[uint64]bool{}
		at := uint64(1)
		for range rapid.IntRange(0, 6).Draw(rt, name) {
			from := at + rapid.Uint64Range(0, 4).Draw(rt, "gap")
			to := from + rapid.Uint64Range(0, 4).Draw(rt, "length")
			spans, at = append(spans, runlog.Span{From: from, To: to}), to+1
			for p := from; p <= to; p++ {
				set[p] = true
			}
		}
		return spans, set
	}
	rapid.Check(t, func(rt *rapid.T) {
		spans, in := disjoint(rt, "spans")
		others, out := disjoint(rt, "others")
		got := map[uint64]bool{}
		for _, s := range runlog.Except(spans, others) {
			for p := s.From; p <= s.To; p++ {
				got[p] = true
			}
		}
		for p := range uint64(60) {
			require.Equal(rt, in[p] && !out[p], got[p], "position %d", p)
		}
	})
}
