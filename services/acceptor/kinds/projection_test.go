package kinds_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/services/acceptor/kinds"
)

// Every kind of the protocol has a projection for the strict mode of every vendor,
// including the open objects of the universal kinds. A valid payload survives the round
// trip unchanged (OpenWOP envelope contract §20).
func TestKinds_HaveAProjectionForEveryVendor(t *testing.T) {
	t.Parallel()
	for _, k := range registry(t, kinds.LintOff).All() {
		for _, v := range projection.Vendors() {
			t.Run(k.Name+"/"+string(v), func(t *testing.T) {
				t.Parallel()
				p, problems := projection.Compile(k.Schema, v)
				require.Empty(t, problems)
				require.Empty(t, projection.LintFor(v, p.Schema()))
				projected, err := schema.Compile("projected", p.Schema())
				require.NoError(t, err)
				require.NotEmpty(t, payloads[k.Name].good)
				for _, good := range payloads[k.Name].good {
					answer, err := p.Lift([]byte(good))
					require.NoError(t, err)
					require.Empty(t, projected.Validate(answer), "%s", answer)
					payload, err := p.Restore(answer)
					require.NoError(t, err)
					require.JSONEq(t, good, string(payload))
				}
			})
		}
	}
}

// OpenWOP envelope contract §5: if a dialect orders members, reasoning comes first.
func TestKinds_ReasonBeforeTheyAnswer(t *testing.T) {
	t.Parallel()
	places := 0
	for _, k := range registry(t, kinds.LintOff).All() {
		var source struct{ Properties map[string]any }
		require.NoError(t, json.Unmarshal(k.Schema, &source))
		_, reasons := source.Properties["reasoning"]
		p, problems := projection.Compile(k.Schema, projection.Gemini)
		require.Empty(t, problems)
		var projected struct{ PropertyOrdering []string }
		require.NoError(t, json.Unmarshal(p.Schema(), &projected))
		if !reasons {
			require.NotContains(t, projected.PropertyOrdering, "reasoning")
			continue
		}
		places++
		require.Equal(t, "reasoning", projected.PropertyOrdering[0], k.Name)
	}
	require.Equal(t, 4, places, "three universal kinds, and the surface")
}
