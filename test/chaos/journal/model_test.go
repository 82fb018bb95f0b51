package journal

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// op is an operation of a history; by default it does not overlap with others.
func op(call, ret int64, what, value, outcome string) porcupine.Operation {
	return porcupine.Operation{Input: input{what, value}, Output: output{outcome: outcome}, Call: call, Return: ret}
}

func saw(call int64, s state) porcupine.Operation {
	return porcupine.Operation{Input: input{op: opRead}, Output: output{seen: s}, Call: call, Return: call}
}

const never = int64(1) << 60

func TestModel_FindsWhatBreaksAPromise(t *testing.T) {
	t.Parallel()
	yes := op(1, 2, opAnswer, "yes", taken)
	answered := state{answer: "yes", events: 7}
	ended := state{answer: "yes", events: 9, ended: true}
	for name, tc := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"one answer counts, the other is rejected":    {[]porcupine.Operation{yes, op(1, 3, opAnswer, "no", refused), saw(4, answered), saw(5, ended)}, true},
		"two answers count":                           {[]porcupine.Operation{yes, op(3, 4, opAnswer, "no", taken)}, false},
		"no answer counts, and one is rejected":       {[]porcupine.Operation{op(1, 2, opAnswer, "no", refused)}, false},
		"an answer is lost":                           {[]porcupine.Operation{yes, saw(3, state{events: 5})}, false},
		"an answer no client sent":                    {[]porcupine.Operation{saw(3, answered)}, false},
		"an answer with unknown outcome counts later": {[]porcupine.Operation{op(1, never, opAnswer, "yes", unknown), saw(2, state{events: 5}), saw(3, answered)}, true},
		"an answer with unknown outcome never counts": {[]porcupine.Operation{op(1, never, opAnswer, "yes", unknown), op(2, 3, opAnswer, "no", taken)}, true},
		"one is cancelled, and again":                 {[]porcupine.Operation{op(1, 2, opCancel, "", taken), op(3, 4, opCancel, "", taken), op(5, 6, opAnswer, "yes", refused)}, true},
		"a cancelled one takes an answer":             {[]porcupine.Operation{op(1, 2, opCancel, "", taken), op(3, 4, opAnswer, "yes", taken)}, false},
		"a cancel is lost":                            {[]porcupine.Operation{op(1, 2, opCancel, "", taken), saw(3, state{events: 5})}, false},
		"a log becomes shorter":                       {[]porcupine.Operation{saw(1, state{events: 5}), saw(2, state{events: 4})}, false},
		"something follows an end":                    {[]porcupine.Operation{yes, saw(3, ended), saw(4, state{answer: "yes", events: 10, ended: true})}, false},
		"an end is reverted":                          {[]porcupine.Operation{yes, saw(3, ended), saw(4, state{answer: "yes", events: 9})}, false},
	} {
		require.Equal(t, tc.want, porcupine.CheckOperations(model(), tc.history), name)
	}
}
