package approval_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/approval"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

var gate = approval.Gate{ID: "g", Role: "approver", OverrideRole: "owner"}

func TestDecide_RequiresTheRole(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gate     approval.Gate
		who      approval.Person
		act      approval.Act
		reason   string
		code     fault.Code
		released bool
		event    wire.EventType
		payload  string
	}{
		"an approver grants":                          {gate, approval.Person{"p", []string{"x", "approver"}}, approval.Grant, "fine", "", true, wire.EventApprovalGranted, `{"gateId":"g","principal":"p"}`},
		"an approver rejects":                         {gate, approval.Person{"p", []string{"approver"}}, approval.Reject, " no ", "", false, wire.EventApprovalRejected, `{"gateId":"g","principal":"p","reason":"no"}`},
		"an approver rejects and says no more":        {gate, approval.Person{"p", []string{"approver"}}, approval.Reject, "", "", false, wire.EventApprovalRejected, `{"gateId":"g","principal":"p"}`},
		"an owner overrides":                          {gate, approval.Person{"p", []string{"owner"}}, approval.Override, "it burns", "", true, wire.EventApprovalOverridden, `{"gateId":"g","principal":"p","reason":"it burns"}`},
		"an override without a reason":                {gate, approval.Person{"p", []string{"owner"}}, approval.Override, "", fault.ValidationError, false, "", ""},
		"an override with a reason of spaces":         {gate, approval.Person{"p", []string{"owner"}}, approval.Override, " \n\t ", fault.ValidationError, false, "", ""},
		"an override with a long reason":              {gate, approval.Person{"p", []string{"owner"}}, approval.Override, strings.Repeat("x", 4097), fault.ValidationError, false, "", ""},
		"another person grants":                       {gate, approval.Person{"p", []string{"reader"}}, approval.Grant, "", fault.Forbidden, false, "", ""},
		"another person rejects":                      {gate, approval.Person{"p", nil}, approval.Reject, "", fault.Forbidden, false, "", ""},
		"an approver overrides":                       {gate, approval.Person{"p", []string{"approver"}}, approval.Override, "r", fault.Forbidden, false, "", ""},
		"an owner grants: roles are not hierarchical": {gate, approval.Person{"p", []string{"owner"}}, approval.Grant, "", fault.Forbidden, false, "", ""},
		"no person grants":                            {gate, approval.Person{"", []string{"approver"}}, approval.Grant, "", fault.Forbidden, false, "", ""},
		"a gate without a role":                       {approval.Gate{ID: "g"}, approval.Person{"p", []string{""}}, approval.Grant, "", fault.Forbidden, false, "", ""},
		"a gate without an override role":             {approval.Gate{ID: "g", Role: "approver"}, approval.Person{"p", []string{"approver", ""}}, approval.Override, "r", fault.Forbidden, false, "", ""},
		"the role in another case":                    {gate, approval.Person{"p", []string{"Approver"}}, approval.Grant, "", fault.Forbidden, false, "", ""},
		"an unknown act":                              {gate, approval.Person{"p", []string{"approver"}}, "shrug", "", fault.ValidationError, false, "", ""},
		"the role is checked before the reason":       {gate, approval.Person{"p", nil}, approval.Override, "", fault.Forbidden, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := approval.Decide(tc.gate, tc.who, tc.act, tc.reason)
			require.Equal(t, tc.released, d.Released)
			if tc.code != "" {
				require.Equal(t, tc.code, fault.CodeOf(err))
				require.Zero(t, d)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.event, d.Event.Type)
			require.JSONEq(t, tc.payload, string(d.Event.Payload))
		})
	}
}

func TestOfEnvelope_NeverApproves(t *testing.T) {
	t.Parallel()
	for trust, code := range map[wire.Trust]fault.Code{
		wire.Untrusted: fault.UntrustedBlocksApproval, wire.Trusted: fault.Forbidden, "": fault.Forbidden,
	} {
		require.Equal(t, code, fault.CodeOf(approval.OfEnvelope(trust)))
	}
}
