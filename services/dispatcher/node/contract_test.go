package node_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

// A contract in a config is checked like that of a node: at registration, and again before a run
// (OpenWOP envelope contract §7).
func TestLint_ChecksTheContractInAConfig(t *testing.T) {
	t.Parallel()
	for config, path := range map[string]string{
		`{"envelopeContract":{"accepts":[]}}`:                                                   "",
		`{"envelopeContract":{"accepts":["a"],"refusalMode":"discard-and-warn"}}`:               "",
		`{"envelopeContract":{"accepts":["a"]},"envelopeType":"a"}`:                             "",
		`{"envelopeContract":{"accepts":[]},"envelopeType":"error"}`:                            "",
		`{"envelopeContract":null}`:                                                             "",
		`{"envelopeContract":{"accepts":[],"refusalMode":"zap"}}`:                               "/envelopeContract/refusalMode",
		`{"envelopeContract":{"acepts":["a"]}}`:                                                 "/envelopeContract/accepts",
		`{"envelopeContract":{"accepts":"a"}}`:                                                  "/envelopeContract",
		`{"envelopeContract":[]}`:                                                               "/envelopeContract",
		`{"envelopeContract":{"accepts":["a"]},"envelopeType":"b"}`:                             "/envelopeType",
		`{"envelopeContract":{"accepts":["a"],"refusalMode":"fail-node"},"envelopeType":"A.b"}`: "/envelopeType",
	} {
		typ := node.Builtin()[node.TypeCallPrompt]
		found, bad := typ.Lint(json.RawMessage(config)), typ.Check(json.RawMessage(config))
		if path == "" {
			require.Empty(t, found, config)
			require.Nil(t, bad, config)
			continue
		}
		require.Len(t, found, 1, config)
		require.Equal(t, path, found[0].Path, config)
		require.Equal(t, workflow.RuleContract, found[0].Rule)
		require.Contains(t, bad.Message, "/config"+path)
	}
}
