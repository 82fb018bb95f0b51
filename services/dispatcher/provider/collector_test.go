package provider_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// finish is what becomes of an answer with such a usage, and its last piece.
func finish(t *testing.T, model string, u provider.Usage) (provider.Result, provider.Delta) {
	t.Helper()
	var last provider.Delta
	c := provider.NewCollector("asked", func(d provider.Delta) error { last = d; return nil })
	c.AnsweredBy(model)
	require.NoError(t, c.Add(provider.Delta{Text: "x"}))
	res, err := c.Finish(provider.Result{Stop: provider.StopClean, RawStop: "stop", Usage: u}, "stop")
	require.NoError(t, err)
	return res, last
}

// OpenWOP envelope contract §19.1: a count is verbatim where it can be one, and never
// below 0 or beyond what a reader of JSON keeps.
func TestCollector_BelievesNoUsageThatCannotBe(t *testing.T) {
	t.Parallel()
	const most = 1 << 50
	for name, tc := range map[string]struct{ reported, want provider.Usage }{
		"verbatim": {
			provider.Usage{
				InputTokens:      3,
				OutputTokens:     4,
				TotalTokens:      9,
				CacheReadTokens:  1,
				CacheWriteTokens: 2,
				CacheApart:       true,
				Known:            true,
			},
			provider.Usage{
				InputTokens:      3,
				OutputTokens:     4,
				TotalTokens:      9,
				CacheReadTokens:  1,
				CacheWriteTokens: 2,
				CacheApart:       true,
				Known:            true,
			},
		},
		"below nothing": {
			provider.Usage{
				InputTokens:      -1,
				OutputTokens:     math.MinInt,
				TotalTokens:      -1,
				CacheReadTokens:  -5,
				CacheWriteTokens: -5,
				Known:            true,
			},
			provider.Usage{Known: true},
		},
		"absurd": {
			provider.Usage{
				InputTokens:      math.MaxInt,
				OutputTokens:     1 << 60,
				TotalTokens:      math.MaxInt,
				CacheReadTokens:  math.MaxInt,
				CacheWriteTokens: math.MaxInt,
				Known:            true,
			},
			provider.Usage{
				InputTokens:      most,
				OutputTokens:     most,
				TotalTokens:      most,
				CacheReadTokens:  most,
				CacheWriteTokens: most,
				Known:            true,
			},
		},
		"no usage": {provider.Usage{InputTokens: 7}, provider.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, last := finish(t, "", tc.reported)
			require.Equal(t, tc.want, res.Usage)
			if tc.want.Known {
				require.Equal(t, tc.want, *last.Usage)
			} else {
				require.Nil(t, last.Usage)
			}
		})
	}
}

// The name stands in every piece, so a long one would fill the log.
func TestCollector_TakesNoNameThatCanBeNone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"answered": "answered", strings.Repeat("m", 256): strings.Repeat("m", 256),
		"": "asked", strings.Repeat("m", 257): "asked", "m\xff": "asked",
	} {
		res, last := finish(t, name, provider.Usage{})
		require.Equal(t, want, res.Model)
		require.Equal(t, want, last.Model)
	}
}
