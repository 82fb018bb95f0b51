package runs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/protocol/wire"
)

func TestWanted_RejectsImpossibleTypes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		wanted wanted
		err    string // empty if it is valid
	}{
		"nothing":                {wanted{}, ""},
		"a type of the protocol": {wanted{types: []string{"node.started"}}, ""},
		"one of a vendor":        {wanted{types: []string{"acme.invoice.sent"}}, ""},
		"patterns": {
			wanted{types: []string{"envelope.*", "*.failed", "acme.*", "no*", "n?de.started", "[nr]*"}},
			"",
		},
		"every group":               {wanted{group: "other"}, ""},
		"no type":                   {wanted{types: []string{"nope"}}, "listed by waybill explain"},
		"an unknown type too":       {wanted{types: []string{"node.started", "nope"}}, `--type "nope"`},
		"a type that is misspelled": {wanted{types: []string{"run.complete"}}, "did you mean run.completed"},
		"a pattern of no type": {
			wanted{types: []string{"envelope.retrie*"}},
			`"envelope.retrie*": no such event type`,
		},
		"not a vendor's name":       {wanted{types: []string{"private.*"}}, "no such event type"},
		"a pattern that is not one": {wanted{types: []string{"node.["}}, "syntax error in pattern"},
		"wrong case":                {wanted{types: []string{"Node.Started"}}, "did you mean node.started"},
		"an unknown group": {
			wanted{group: "nodes"},
			"want artifact, envelope, interrupt, log, memory, model, node, other, run, tool",
		},
		"a type of a reserved name":         {wanted{types: []string{"vendor.acme.sent"}}, "a vendor's type such as"},
		"a type with an empty part":         {wanted{types: []string{"acme..sent"}}, "no such event type"},
		"an empty type":                     {wanted{types: []string{""}}, "no such event type"},
		"a type in a group of the protocol": {wanted{types: []string{"run.nothing"}}, "no such event type"},
	} {
		err := tc.wanted.check()
		if tc.err == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tc.err, name)
		require.Equal(t, exit.Usage, exit.Status(err), name)
	}
}

func TestWanted_SelectsByTypeAndGroup(t *testing.T) {
	t.Parallel()
	of := func(typ wire.EventType) client.Event {
		var e client.Event
		e.Type = typ
		return e
	}
	for name, tc := range map[string]struct {
		wanted wanted
		typ    wire.EventType
		want   bool
	}{
		"all":                       {wanted{}, "node.started", true},
		"the type":                  {wanted{types: []string{"run.started", "node.started"}}, "node.started", true},
		"another type":              {wanted{types: []string{"run.started"}}, "node.started", false},
		"a pattern":                 {wanted{types: []string{"node.*"}}, "node.started", true},
		"a vendor's":                {wanted{types: []string{"acme.*"}}, "acme.invoice.sent", true},
		"the group":                 {wanted{group: "node"}, "node.started", true},
		"another group":             {wanted{group: "run"}, "node.started", false},
		"a vendor's group is other": {wanted{group: "other"}, "acme.invoice.sent", true},
		"the type, not the group":   {wanted{types: []string{"node.*"}, group: "run"}, "node.started", false},
	} {
		require.Equal(t, tc.want, tc.wanted.fits(of(tc.typ)), name)
	}
}
