package compat_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/openaicompat"
)

func TestCall_TellsCapacityFromOtherFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reply openaicompat.Reply
		want  bool
	}{
		"rate limit":         {openaicompat.Reply{Status: 429, Code: "rate_limit_exceeded"}, true},
		"unavailable":        {openaicompat.Reply{Status: 503}, true},
		"overloaded":         {openaicompat.Reply{Status: 529}, true},
		"overloaded by code": {openaicompat.Reply{Status: 500, Code: "engine_overloaded"}, true},
		"no money":           {openaicompat.Reply{Status: 429, Code: "insufficient_quota"}, false},
		"server error":       {openaicompat.Reply{Status: 500}, false},
		"broken off":         {openaicompat.Reply{Pieces: []string{"a"}, End: openaicompat.EndCut}, false},
	} {
		require.Equal(t, tc.want, newRig(t, nil).fail(t, tc.reply).Capacity, name)
	}
}
