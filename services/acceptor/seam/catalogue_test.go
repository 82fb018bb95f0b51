package seam

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// hostKinds has the universal kinds and one vendor kind.
type hostKinds struct{}

func (hostKinds) Find(name string) (accept.Kind, bool) {
	if wire.IsUniversal(name) {
		return accept.Kind{Name: name, Version: 1, Payload: refusing{}}, true
	}
	if name == "vendor.own.kind" {
		return accept.Kind{Name: name, Version: 4, Payload: refusing{}}, true
	}
	return accept.Kind{}, false
}

func (hostKinds) Names() []string { return append(wire.Universals(), "vendor.own.kind") }

// refusing rejects every payload.
type refusing struct{}

func (refusing) Validate([]byte) []schema.Violation { return []schema.Violation{{Keyword: "false"}} }

func TestCatalogue_ReplacesKindsAndVersions(t *testing.T) {
	t.Parallel()
	list := func(names ...string) *[]string { return &names }
	tests := map[string]struct {
		supported *[]string
		floor     map[string]int
		name      string
		found     bool
		version   int
		judged    bool
	}{
		"host's own":          {nil, nil, "vendor.own.kind", true, 4, true},
		"unknown to the host": {nil, nil, "vendor.x.y", false, 0, false},
		"taken out":           {list("vendor.x.y"), nil, "vendor.own.kind", false, 0, false},
		"put in":              {list("vendor.x.y"), nil, "vendor.x.y", true, accept.Unlisted, false},
		"put in, with a version": {
			list("vendor.x.y"),
			map[string]int{"vendor.x.y": 3},
			"vendor.x.y", true, 3, false,
		},
		"universal is never taken out":    {list(), nil, "error", true, 1, true},
		"universal, other version":        {nil, map[string]int{"error": 7}, "error", true, 7, true},
		"version of others only":          {nil, map[string]int{"x": 7}, "error", true, accept.Unlisted, true},
		"empty floor lists nothing":       {nil, map[string]int{}, "vendor.own.kind", true, accept.Unlisted, true},
		"kept by the host's own schema":   {list("vendor.own.kind"), nil, "vendor.own.kind", true, 4, true},
		"version without kind is no kind": {nil, map[string]int{"vendor.x.y": 3}, "vendor.x.y", false, 0, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := catalogue{host: hostKinds{}, supported: tc.supported, floor: tc.floor}
			k, found := c.Find(tc.name)
			require.Equal(t, tc.found, found)
			if !found {
				return
			}
			require.Equal(t, tc.name, k.Name)
			require.Equal(t, tc.version, k.Version)
			require.Equal(t, tc.judged, k.Payload != nil)
		})
	}
}

func TestCatalogue_NamesSupportedKinds(t *testing.T) {
	t.Parallel()
	require.Equal(t, hostKinds{}.Names(), catalogue{host: hostKinds{}}.Names())
	some := []string{"a", "b"}
	require.Equal(t, some, catalogue{host: hostKinds{}, supported: &some}.Names())
}

func TestRequest_NamesTheNodeOfTheProjection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ envelope, node, want string }{
		"named":                   {`{"nodeId":"b"}`, "a", "a"},
		"the envelope's":          {`{"nodeId":"b"}`, "", "b"},
		"neither":                 {`{}`, "", defaultNode},
		"envelope's is no string": {`{"nodeId":7}`, "", defaultNode},
		"envelope's is too long":  {`{"nodeId":"` + strings.Repeat("x", 129) + `"}`, "", defaultNode},
		"no object":               {`[]`, "", defaultNode},
		"another member":          {`{"NodeID":"b"}`, "", defaultNode},
		"two members":             {`{"nodeId":"b","nodeid":"c"}`, "", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Request{Envelope: json.RawMessage(tc.envelope), ProjectTo: &Projection{RunID: "r", NodeID: tc.node}}
			require.Equal(t, tc.want, r.nodeID())
			require.Equal(t, tc.want, acceptRequest("acme", &r).NodeID)
		})
	}
}

func TestRequest_DefaultsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	r, err := Parse([]byte(`{"envelope":{}}`))
	require.NoError(t, err)
	require.Nil(t, r.contract(), "no contract")
	require.Equal(t, accept.FailNode, r.refusalMode())
	require.False(t, r.needsApproval())
	in := acceptRequest("acme", r)
	require.Equal(t, accept.Counters{}, in.Counters, "not limited")
	require.Empty(t, in.Boundary)
	require.Empty(t, in.NodeID)
	require.Equal(t, "acme", in.Run.Tenant)

	r, err = Parse([]byte(`{"envelope":{},"nodeAllowedKinds":["a"],"counters":{"schemaRounds":{"current":1,"cap":2}},
		"boundInterruptKind":"approval","runTrustBoundary":"untrusted","projectTo":{"runId":"r","refusalMode":"discard-and-warn"}}`))
	require.NoError(t, err)
	in = acceptRequest("acme", r)
	require.Equal(t, []string{"a"}, in.Contract.Accepts)
	require.Equal(t, accept.DiscardAndWarn, in.Mode)
	require.Equal(t, &accept.Counter{Current: 1, Cap: 2}, in.Counters.SchemaRounds)
	require.True(t, in.ApprovalContext)
	require.Equal(t, "r", in.Run.RunID)
}
