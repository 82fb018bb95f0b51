package kinds_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/projection"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/services/acceptor/kinds"
)

// Every kind of the protocol can be asked for in the strict mode of every vendor,
// the open bags of the universal ones included; what was good comes back as it
// was (OpenWOP envelope contract §20).
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
