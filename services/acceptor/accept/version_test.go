package accept_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// OpenWOP envelope contract §4.1.
func TestVersion_ComparesWithTheAdvertisedOne(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		version string // as written; empty means absent
		strict  bool
		ok      bool
		drift   bool
	}{
		"equal":                        {"2", false, true, false},
		"equal, strict":                {"2", true, true, false},
		"equal as 2.0 (case 7)":        {"2.0", true, true, false},
		"equal as 0.2e1":               {"0.2e1", true, true, false},
		"lower drifts":                 {"1", false, true, true},
		"lower, strict":                {"1", true, false, false},
		"absent counts as 0":           {"", false, true, true},
		"absent, strict":               {"", true, false, false},
		"higher":                       {"3", false, false, false},
		"higher, strict":               {"3", true, false, false},
		"far beyond any machine's int": {"99999999999999999999999", false, false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.policy.Strict = tc.strict
			d := doc(note, goodNote, with("schemaVersion", nil))
			if tc.version != "" {
				d = strings.Replace(d, `{`, `{"schemaVersion":`+tc.version+`,`, 1)
			}
			res := f.accept(d)
			require.Equal(t, tc.drift, res.Attributes.Drift)
			require.Equal(t, version, res.Attributes.AdvertisedVersion)
			if tc.ok {
				accepted(t, res)
				return
			}
			r := refused(t, res, accept.Invalid, fault.UnknownSchemaVersion)
			require.Equal(t, "/schemaVersion", r.Details[0].InstancePath)
			f.nothingRecorded()
		})
	}
}
