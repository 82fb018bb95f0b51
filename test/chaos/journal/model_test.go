package journal

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// op is an operation of a history, at a time of its own unless it says otherwise.
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
		"one answers, the other is refused":           {[]porcupine.Operation{yes, op(1, 3, opAnswer, "no", refused), saw(4, answered), saw(5, ended)}, true},
		"two answers count":                           {[]porcupine.Operation{yes, op(3, 4, opAnswer, "no", taken)}, false},
		"none counts, and one is refused":             {[]porcupine.Operation{op(1, 2, opAnswer, "no", refused)}, false},
		"an answer is lost":                           {[]porcupine.Operation{yes, saw(3, state{events: 5})}, false},
		"an answer comes from nobody":                 {[]porcupine.Operation{saw(3, answered)}, false},
		"one of which nobody knows counts in the end": {[]porcupine.Operation{op(1, never, opAnswer, "yes", unknown), saw(2, state{events: 5}), saw(3, answered)}, true},
		"one of which nobody knows never counts":      {[]porcupine.Operation{op(1, never, opAnswer, "yes", unknown), op(2, 3, opAnswer, "no", taken)}, true},
		"one is cancelled, and again":                 {[]porcupine.Operation{op(1, 2, opCancel, "", taken), op(3, 4, opCancel, "", taken), op(5, 6, opAnswer, "yes", refused)}, true},
		"a cancelled one takes an answer":             {[]porcupine.Operation{op(1, 2, opCancel, "", taken), op(3, 4, opAnswer, "yes", taken)}, false},
		"a cancel is lost":                            {[]porcupine.Operation{op(1, 2, opCancel, "", taken), saw(3, state{events: 5})}, false},
		"a log becomes shorter":                       {[]porcupine.Operation{saw(1, state{events: 5}), saw(2, state{events: 4})}, false},
		"something follows an end":                    {[]porcupine.Operation{yes, saw(3, ended), saw(4, state{answer: "yes", events: 10, ended: true})}, false},
		"an end is taken back":                        {[]porcupine.Operation{yes, saw(3, ended), saw(4, state{answer: "yes", events: 9})}, false},
	} {
		require.Equal(t, tc.want, porcupine.CheckOperations(model(), tc.history), name)
	}
}
