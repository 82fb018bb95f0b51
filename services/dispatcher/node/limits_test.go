package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/node"
)

var theLimits = node.Limits{MaxNodeExecutions: 1000, MaxRunDuration: 24 * time.Hour}

// chain is a definition of nodes that come one after the other, and the first of which has a
// rest, and the edge to it an addition.
func chain(t *testing.T, n int, rest, edge string) *workflow.Definition {
	t.Helper()
	var nodes, edges []string
	for i := range n {
		more := bare
		if i == 1 {
			more += rest
		}
		nodes = append(nodes, nodeJSON(fmt.Sprint("n", i), "core.noop", more))
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":"n%d","targetNodeId":"n%d"%s}`, i, i-1, i, edge))
			edge = ""
		}
	}
	return definitionOf(t, strings.Join(nodes, ","), strings.Join(edges, ","))
}

func TestLimits_RefuseMoreNodesThanARunMayExecute(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		n          int
		rest, edge string
		refused    bool
	}{
		"as many as it may":     {n: 1000},
		"one more":              {n: 1001, refused: true},
		"behind a condition":    {n: 1002, edge: `,"condition":{"type":"expression","expression":"true"}`},
		"behind a disabled one": {n: 1002, rest: `,"disabled":true`},
		"after a failure":       {n: 1002, edge: `,"triggerRule":"any_failed"`},
	} {
		problems, warned := theLimits.Review(chain(t, tt.n, tt.rest, tt.edge))
		require.Empty(t, warned, name)
		if !tt.refused {
			require.Empty(t, problems, name)
			continue
		}
		require.Len(t, problems, 1, name)
		require.Equal(t, "/nodes", problems[0].Path)
		require.Equal(t, node.RuleLimit, problems[0].Rule)
		require.Contains(t, problems[0].Message, "at least 1001 nodes")
		require.Contains(t, problems[0].Message, "may execute 1000")
	}
}

func TestLimits_WarnOfATimeoutThatTheHostDoesNotAllow(t *testing.T) {
	t.Parallel()
	def := chain(t, 1, "", "")
	def.Settings.TimeoutMillis = (25 * time.Hour).Milliseconds()
	problems, warned := theLimits.Review(def)
	require.Empty(t, problems)
	require.Len(t, warned, 1)
	require.Equal(t, "/settings/timeout", warned[0].Path)
}

func TestReview_RejectsDelaysOutOfRange(t *testing.T) {
	t.Parallel()
	for rest, want := range map[string]string{
		`,"inputs":{},"config":{"delayMs":2592000000}`:                             "", // 30 days
		`,"inputs":{},"config":{"ms":31622400000}`:                                 "",
		`,"inputs":{},"config":{"ms":31622400001}`:                                 "/nodes/0/config/ms",
		`,"inputs":{},"config":{"delayMs":-1}`:                                     "/nodes/0/config/delayMs",
		`,"inputs":{},"config":{"durationMs":"1 h"}`:                               "/nodes/0/config/durationMs",
		`,"config":{},"inputs":{"delayMs":{"type":"static","value":31622400001}}`:  "/nodes/0/inputs/delayMs",
		`,"config":{},"inputs":{"delayMs":{"type":"static","value":31622400000}}`:  "",
		`,"config":{},"inputs":{"delayMs":{"type":"variable","variableName":"x"}}`: "",
	} {
		found, _ := node.Builtin().Review(definitionOf(t, nodeJSON("a", "core.delay", rest), ""), nil)
		if want == "" {
			require.Empty(t, found, rest)
			continue
		}
		require.Len(t, found, 1, rest)
		require.Equal(t, want, found[0].Path, rest)
		require.Contains(t, found[0].Message, "31622400000 (366 days)", rest)
	}
}
