package models

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// waited is the payload of node.retried for a wait.
type waited struct {
	Timestamp string `json:"timestamp"`
	Payload   struct {
		DelayMs   int64 `json:"delayMs"`
		LastError struct {
			Details map[string]any `json:"details"`
		} `json:"lastError"`
	} `json:"payload"`
}

// A wait for capacity is in the log. A host killed during the wait and restarted waits until the
// recorded time and calls the vendor once more.
func TestCapacity_TheWaitSurvivesARestart(t *testing.T) {
	t.Parallel()
	needsHost(t)
	checked(t, &harness.Client{}) // load the schemas before the parallel tests
	for i, v := range vendors {
		t.Run(v.id, func(t *testing.T) {
			t.Parallel()
			h, lines := hostOnLines(t)
			k := &crash{h: h, v: v, line: lines[v.id], shape: "value", mode: "whole", name: "capacity-" + strconv.Itoa(i)}
			v.desk.put(k.name, answer{status: http.StatusTooManyRequests, retryAfter: "4"}, answer{text: good, in: 5, out: 5})
			k.begin(t)
			before := of(k.await(t, again), again)
			h.Kill()
			require.Equal(t, 1, v.desk.count(k.name))
			h.Launch()
			events := finish(t, checked(t, h.Client("dev-key")), k.run)
			require.Equal(t, []string{"run.started", started, again, started, usage, completed, "run.completed"}, typesBut(events, chunk), "%s", dump(events))
			require.Equal(t, 2, v.desk.count(k.name))
			require.JSONEq(t, string(before[0].Raw), string(of(events, again)[0].Raw))

			var wait waited
			require.NoError(t, json.Unmarshal(of(events, again)[0].Raw, &wait))
			require.Equal(t, "no_capacity", wait.Payload.LastError.Details["reason"])
			require.GreaterOrEqual(t, wait.Payload.DelayMs, int64(4000))
			var begun waited
			require.NoError(t, json.Unmarshal(of(events, started)[1].Raw, &begun))
			require.GreaterOrEqual(t, instant(t, begun).Sub(instant(t, wait)), time.Duration(wait.Payload.DelayMs)*time.Millisecond)
		})
	}
}

func instant(t *testing.T, e waited) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, e.Timestamp)
	require.NoError(t, err)
	return at
}
