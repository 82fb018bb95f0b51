// Package golden holds what this build makes of runs that were recorded before: each is
// folded and replayed, and nothing may come out otherwise. `make golden` records them anew,
// after a change that is meant to be one.
package golden

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/flow"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/run"
	"waybill.dev/waybill/test/harness"
)

var limits = run.Limits{MaxNodeExecutions: 1000, MaxDuration: 24 * time.Hour, MaxParallel: 128}

// load reads a recorded run, and the plan of its workflow.
func load(t *testing.T, file string) (*wire.RunRecord, []wire.Event, run.Plan) {
	t.Helper()
	b, err := os.ReadFile(file) //nolint:gosec // G304: of the corpus
	require.NoError(t, err)
	var r harness.Recording
	require.NoError(t, json.Unmarshal(b, &r))
	rec, err := wire.ParseRunRecord(r.Record)
	require.NoError(t, err)
	def, problems := workflow.Parse(r.Workflow)
	require.Empty(t, problems)
	compiled, problems := flow.Compile(def)
	require.Empty(t, problems)
	return rec, r.Events, run.Plan{Def: def, Graph: workflow.Compile(def), Flow: compiled, Types: node.Builtin().Conformance(nil)}
}

func facts(events []wire.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s@%s %s %s\n", e.Type, e.NodeID, e.ContentTrust, e.Payload)
	}
	return b.String()
}

// Each recorded run, replayed from its start by this build, is the run it was.
func TestGolden_ReplaysAreTheRunsTheyWere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("corpus", "*.json"))
	require.NoError(t, err)
	require.Greater(t, len(files), 20)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec, source, plan := load(t, file)
			again := *rec
			again.RunID = "run_again"
			again.Fork = &wire.Fork{SourceRunID: rec.RunID, Mode: wire.ForkReplay, Head: len(source)}
			var log []wire.Event
			for now := time.Unix(2_000_000_000, 0); ; {
				m := run.New(plan, limits, runstate.Fold(&again, log)).Replaying(run.NewTape(*again.Fork, source, log))
				require.Empty(t, m.Advance(now), "a replay asks nobody")
				events, _ := m.Pending()
				if log = append(log, events...); !m.More() {
					break
				}
			}
			require.Equal(t, facts(source), facts(log))
		})
	}
}

// The fold of a recorded run ends where the run did, and any part of it in a state that
// the protocol has.
func TestGolden_FoldsAreLegal(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("corpus", "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		rec, events, _ := load(t, file)
		st := runstate.New(rec)
		for i, e := range events {
			require.Equal(t, i, e.Sequence, file)
			require.False(t, st.Status.Terminal(), "%s: event %d follows the end", file, i)
			st.Apply(e)
			require.Contains(t, wire.Statuses(), st.Status, file)
		}
		require.True(t, st.Status.Terminal(), file)
		require.True(t, json.Valid(st.SnapshotJSON()), file)
	}
}
