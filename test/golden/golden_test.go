// Package golden replays and folds recorded runs with this build; the results must match the
// recordings. After an intended change, `make gen ONLY=golden` records them again.
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

	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/test/harness"
)

// types returns the node types of the recording hosts.
func types(t *testing.T) node.Catalog {
	t.Helper()
	packs, _, err := pack.Load([]pack.Source{{Folder: "desk", FS: os.DirFS(filepath.Join("..", "conformance", "testdata", "packs", "desk"))}}, pack.Host{Any: true})
	require.NoError(t, err)
	return node.Builtin().Conformance(map[string]string{harness.CanaryID: harness.Canary}).With(packs).
		And(node.Type{ID: node.TypeMCPCallTool, Class: node.Effect}, node.Type{ID: node.TypeA2ASendMessage, Class: node.Effect})
}

// recordings lists the files of the corpus.
func recordings(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("corpus", "*.json"))
	require.NoError(t, err)
	require.Greater(t, len(files), 20)
	return files
}

var limits = machine.Limits{MaxNodeExecutions: 1000, MaxDuration: 24 * time.Hour, MaxParallel: 128}

// load reads a recorded run and the plan of its workflow.
func load(t *testing.T, file string) (record *wire.RunRecord, events []wire.Event, plan machine.Plan) {
	t.Helper()
	b, err := os.ReadFile(file) //nolint:gosec // G304: of the corpus
	require.NoError(t, err)
	var r harness.Recording
	require.NoError(t, json.Unmarshal(b, &r))
	rec, err := wire.ParseRunRecord(r.Record)
	require.NoError(t, err)
	def, problems := workflow.Parse(r.Workflow)
	require.Empty(t, problems)
	compiled, problems := definition.Compile(def)
	require.Empty(t, problems)
	return rec, r.Events, machine.Plan{Def: def, Graph: workflow.Compile(def), Flow: compiled, Types: types(t)}
}

func facts(events []wire.Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s@%s %s %s\n", e.Type, e.NodeID, e.ContentTrust, e.Payload)
	}
	return b.String()
}

// Each recorded run, replayed from its start, has the same events.
func TestGolden_ReplaysEqualTheirRuns(t *testing.T) {
	t.Parallel()
	for _, file := range recordings(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			rec, source, plan := load(t, file)
			again := *rec
			again.RunID = "run_again"
			again.Fork = &wire.Fork{SourceRunID: rec.RunID, Mode: wire.ForkReplay, Head: len(source)}
			var log []wire.Event
			for now := time.Unix(2_000_000_000, 0); ; {
				m := machine.NewReplay(plan, limits, runstate.Fold(&again, log), machine.NewHistory(*again.Fork, source, log))
				require.Empty(t, m.Advance(now), "a replay makes no calls")
				events, _ := m.Pending()
				if rec.Masking != "" { // as the appender does
					for i, e := range events {
						events[i] = m.MaskPolicy().Event(e)
					}
				}
				if log = append(log, events...); !m.MustAppend() {
					break
				}
			}
			require.Equal(t, facts(source), facts(log))
		})
	}
}

// The fold of a recorded run has the run's end, and every prefix folds to a legal state.
func TestGolden_FoldsAreLegal(t *testing.T) {
	t.Parallel()
	for _, file := range recordings(t) {
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
