package anthropic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	double "waybill.dev/waybill/test/double/anthropic"
)

func TestCall_TellsCapacityFromOtherFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reply double.Reply
		want  bool
	}{
		"rate limit":         {double.Reply{Status: 429}, true},
		"unavailable":        {double.Reply{Status: 503}, true},
		"overloaded":         {double.Reply{Status: 529}, true},
		"overloaded, midway": {double.Reply{End: double.EndError, Type: "overloaded_error"}, true},
		"no money":           {double.Reply{Status: 429, Message: "Your credit balance is too low"}, false},
		"server error":       {double.Reply{Status: 500}, false},
		"bad gateway":        {double.Reply{Status: 502}, false},
		"broken off":         {double.Reply{Pieces: []string{"a"}, End: double.EndCut}, false},
	} {
		require.Equal(t, tc.want, newRig(t, nil).fail(t, ask(), tc.reply).Capacity, name)
	}
}
