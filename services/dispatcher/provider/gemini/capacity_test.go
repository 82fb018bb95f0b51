package gemini_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	double "waybill.dev/waybill/test/double/gemini"
)

func TestCall_TellsCapacityFromOtherFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reply double.Reply
		want  bool
	}{
		"rate limit":         {double.RateLimited("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "34.5s"), true},
		"rate limit, midway": {midway(double.RateLimited("PerMinute", "3s")), true},
		"unavailable":        {fails(503, double.Reply{}), true},
		"unavailable midway": {midway(fails(503, double.Reply{})), true},
		"overloaded":         {fails(529, double.Reply{}), true},
		"quota of the day":   {double.RateLimited("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "34s"), false},
		"no money":           {fails(402, double.Reply{}), false},
		"server error":       {fails(500, double.Reply{}), false},
		"broken off":         {double.Reply{Pieces: []string{"a"}, End: double.EndCut}, false},
	} {
		require.Equal(t, tc.want, newRig(t, nil).fail(t, ask(), tc.reply).Capacity, name)
	}
}
