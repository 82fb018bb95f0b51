package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/test/harness"
)

// putPair registers a workflow of two nodes, a and b, and returns the body that starts it.
func putPair(t *testing.T, c *harness.Client) string {
	t.Helper()
	node := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"typeId":"core.noop","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{}}`, id)
	}
	put(t, c, `{"id":"pair","name":"p","version":"1","nodes":[`+node("a")+`,`+node("b")+`],
		"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"b"}],"triggers":[],"variables":[],"metadata":{},"settings":{}}`)
	return `{"workflowId":"pair"}`
}

// recordOtherwise appends a copy of a run, as a host would have recorded it that does not execute one of its
// nodes. It returns the copy's id.
func recordOtherwise(t *testing.T, log *jetstream.Log, runID, without string) string {
	t.Helper()
	frames, err := log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: runID})
	require.NoError(t, err)
	copied := runID[:len(runID)-4] + "0000"
	run := frames[0].Run
	run.RunID = copied
	first := frame.NewStart(run, bytes.ReplaceAll(frames[0].Body, []byte(runID), []byte(copied)))
	first.Pos, err = log.Append(t.Context(), first, 0)
	require.NoError(t, err)
	var events []wire.Event
	for _, f := range frames[1:] {
		list, err := f.Events()
		require.NoError(t, err)
		for _, e := range list {
			if e.NodeID != without {
				d := wire.Draft{Type: e.Type, NodeID: e.NodeID, Payload: e.Payload, Trust: e.ContentTrust}
				events = append(events, d.Place(copied, len(events), time.Now()))
			}
		}
	}
	_, err = log.Append(t.Context(), frame.New(run, subject.End, first.Head(), events).By("older-1"), first.Pos)
	require.NoError(t, err)
	return copied
}

// checkDivergence replays a run that has no events of node b. OpenWOP host contract §7.2, §12 no. 34: the replay
// records once where it differs, and continues.
func checkDivergence(t *testing.T, c *harness.Client, source string) {
	t.Helper()
	recorded, err := c.Finish(within(t, time.Minute), source)
	require.NoError(t, err)
	require.Equal(t, []string{"run.started", "node.started", "node.completed", "run.completed"}, names(recorded))

	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+source+":fork", `{"mode":"replay","fromSeq":0}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var fork struct{ RunID string }
	require.NoError(t, a.JSON(&fork))
	got, err := c.Finish(within(t, time.Minute), fork.RunID)
	require.NoError(t, err)
	require.Equal(t, []string{
		"run.started", "node.started", "node.completed", "replay.diverged", "node.started", "node.completed", "run.completed",
	}, names(got))
	var p map[string]any
	require.NoError(t, json.Unmarshal(got[3].Payload, &p))
	require.Equal(t, map[string]any{
		"sourceRunId":     source,
		"atSequence":      3.0,
		"originalEventId": recorded[3].EventID,
		"replayEventId":   got[4].EventID,
		"divergenceKind":  "type-mismatch",
		"divergencePoint": "run.completed",
	}, p)

	a, err = c.Do(t.Context(), http.MethodGet, "/v1/runs/"+fork.RunID+"/debug-bundle", "")
	require.NoError(t, err)
	require.Contains(t, string(a.Body), `"openwop.replay.diverged":true`)
}
