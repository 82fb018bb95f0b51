package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
)

func TestParse_ChecksContracts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contract any
		asks     any
		path     string // empty means no problem
	}{
		"none":                         {nil, "vendor.x.a", ""},
		"takes what it asks for":       {map[string]any{"accepts": []any{"vendor.x.a"}}, "vendor.x.a", ""},
		"both modes":                   {map[string]any{"accepts": []any{}, "refusalMode": "discard-and-warn"}, nil, ""},
		"documents the universals":     {map[string]any{"accepts": []any{}, "alwaysAccepted": []any{"error"}}, nil, ""},
		"asks for a universal":         {map[string]any{"accepts": []any{}}, "clarification.request", ""},
		"asks for what it refuses":     {map[string]any{"accepts": []any{"vendor.x.a"}}, "vendor.x.b", "/nodes/1/config/envelopeType"},
		"accepts is no list":           {map[string]any{"accepts": "vendor.x.a"}, nil, "/nodes/1/envelopeContract"},
		"accepts holds a number":       {map[string]any{"accepts": []any{1}}, nil, "/nodes/1/envelopeContract"},
		"without accepts":              {map[string]any{"refusalMode": "fail-node"}, nil, "/nodes/1/envelopeContract/accepts"},
		"spelled otherwise":            {map[string]any{"Accepts": []any{}}, nil, "/nodes/1/envelopeContract/accepts"},
		"an unknown mode":              {map[string]any{"accepts": []any{}, "refusalMode": "ignore"}, nil, "/nodes/1/envelopeContract/refusalMode"},
		"an envelopeType of no string": {map[string]any{"accepts": []any{}}, 7, ""}, // the node's own check rejects it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := workflow.Parse(small(t, func(d map[string]any) {
				n := node("b")
				if c.contract != nil {
					n["envelopeContract"] = c.contract
				}
				if c.asks != nil {
					n["config"] = map[string]any{"envelopeType": c.asks}
				}
				d["nodes"] = []any{node("a"), n}
			}))
			if c.path == "" {
				require.Empty(t, problems)
				return
			}
			require.NotEmpty(t, problems)
			last := problems[len(problems)-1] // an unknown member comes first
			require.Equal(t, c.path, last.Path)
			require.Equal(t, workflow.RuleContract, last.Rule)
			for _, p := range problems[:len(problems)-1] {
				require.Equal(t, workflow.RuleUnknownMember, p.Rule)
			}
		})
	}
}
