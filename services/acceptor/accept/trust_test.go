package accept_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

func TestTrust_TagWinsOverBoundaryWinsOverTrusted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		tag, boundary, want wire.Trust
	}{
		"no tag and no boundary":         {"", "", wire.Trusted},
		"untrusted run":                  {"", wire.Untrusted, wire.Untrusted},
		"untrusted tag":                  {wire.Untrusted, "", wire.Untrusted},
		"untrusted tag in a trusted run": {wire.Untrusted, wire.Trusted, wire.Untrusted},
		"trusted tag is honoured":        {wire.Trusted, wire.Untrusted, wire.Trusted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			m := meta()
			if tc.tag != "" {
				m = meta("contentTrust", string(tc.tag))
			}
			res := f.accept(doc(note, goodNote, m), func(r *accept.Request) { r.Boundary = tc.boundary })
			require.Equal(t, tc.want, accepted(t, res).NormalizedMeta.ContentTrust)
			for _, e := range res.Events {
				require.Equal(t, tc.want, e.ContentTrust)
			}
			require.Equal(t, tc.want, res.Attributes.Trust)
		})
	}
}
