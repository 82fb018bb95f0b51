package models

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// kills returns how often each point is tried; WAYBILL_MODEL_KILLS overrides it.
func kills(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("WAYBILL_MODEL_KILLS"))
	if err != nil {
		return len(vendors)
	}
	return n
}

// crash is one run whose host is killed.
type crash struct {
	h     *harness.Host
	v     *vendor
	line  *line
	name  string
	shape string
	mode  string
	run   string
	rand  *rand.Rand
	// before is the log before the kill, and envelope the id of its envelope; empty if unknown.
	before   []harness.Event
	envelope string
}

// OpenWOP envelope contract §26 cases 10 and 11, and §9: wherever the host dies, there is one
// answer in the end, and a recorded answer is never requested again.
func TestCrash_OneAnswerWhereverTheHostDies(t *testing.T) {
	t.Parallel()
	harness.InOneProcess(t, "it reads the embedded log's file to time the kill")
	if testing.Short() {
		t.Skip("SKIPPED, kills real processes: run without -short")
	}
	checked(t, &harness.Client{}) // load the schemas before the parallel tests
	for name, p := range killed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := harness.Seed(t)
			h, lines := hostOnLines(t)
			for i := range kills(t) {
				v := vendors[i%len(vendors)]
				hit := false
				for try := 0; !hit; try++ {
					require.Less(t, try, 20, "the kill point was missed repeatedly")
					k := &crash{h: h, v: v, line: lines[v.id], shape: p.shapes[r.IntN(len(p.shapes))], mode: p.modes[r.IntN(len(p.modes))], rand: r}
					k.name = unsafeInName.ReplaceAllString(fmt.Sprintf("%s-%d-%d", name, i, try), "-")
					hit = p.kill(t, k)
					if hit {
						h.Launch()
					}
					events := finish(t, checked(t, h.Client("dev-key")), k.run)
					checkLog(t, k, events)
					if hit && p.calls > 0 {
						require.Equal(t, p.calls, k.v.desk.count(k.name), "calls of the vendor\n%s", dump(events))
						checkRepeat(t, map[string]string{"streamed": p.streamed, "whole": p.whole}[k.mode], events)
					}
				}
			}
		})
	}
}

// hostOnLines starts a host whose calls go through lines, with further flags.
func hostOnLines(t *testing.T, flags ...string) (*harness.Host, map[string]*line) {
	t.Helper()
	lines, addresses := map[string]*line{}, map[string]string{}
	for _, v := range vendors {
		lines[v.id] = newLine(t, v)
		addresses[v.id] = lines[v.id].url
	}
	h := harness.StartWith(t, harness.Options{Args: append(hostArgs(addresses), flags...), Env: keys(vendors)})
	require.NoError(t, h.Deploy(workflows(), "dev-key"))
	return h, lines
}

// begin starts the run.
func (k *crash) begin(t *testing.T) {
	t.Helper()
	k.run = start(t, k.h.Client("dev-key"), asks(k.shape+"-"+k.mode, k.name, k.v, k.v.seeing, ""))
}

// await waits until the run's log has an event of a type, and returns the log.
func (k *crash) await(t *testing.T, typ string) []harness.Event {
	t.Helper()
	var events []harness.Event
	require.Eventually(t, func() bool {
		a, err := k.h.Client("dev-key").Do(t.Context(), http.MethodGet, "/v1/runs/"+k.run+"/events/poll", "")
		if err != nil || a.Status != http.StatusOK {
			return false
		}
		var p harness.Page
		require.NoError(t, a.JSON(&p))
		events, err = harness.ParseEvents(p.Events)
		require.NoError(t, err)
		return len(of(events, typ)) > 0
	}, time.Minute, time.Millisecond, "no %s", typ)
	return events
}

func reach(t *testing.T, p chan struct{}) {
	t.Helper()
	select {
	case <-p:
	case <-time.After(time.Minute):
		require.Fail(t, "the call did not reach the point")
	}
}

// checkLog checks a run's log against the rules that hold after any crash.
func checkLog(t *testing.T, k *crash, events []harness.Event) {
	t.Helper()
	counts, ids := map[string]int{}, map[string]bool{}
	for i, e := range events {
		require.Equal(t, i, e.Sequence, "sequences are contiguous from 0")
		require.False(t, ids[e.EventID], "event %s is recorded twice", e.EventID)
		ids[e.EventID] = true
		counts[e.Type]++
	}
	for i, e := range k.before {
		require.Equal(t, string(e.Raw), string(events[i].Raw), "recorded events must not change")
	}
	for _, once := range []string{"run.started", completed, "run.completed"} {
		require.Equal(t, 1, counts[once], "%s\n%s", once, dump(events))
	}
	require.Equal(t, "run.completed", events[len(events)-1].Type)
	var end struct {
		Outputs struct {
			Output    struct{ Answer int }
			Envelopes []struct{ EnvelopeID string }
		}
	}
	require.NoError(t, json.Unmarshal(of(events, completed)[0].Payload, &end))
	require.Equal(t, 42, end.Outputs.Output.Answer, "the answer was lost")
	require.Zero(t, counts[failed])
	if k.shape == "value" {
		return
	}
	require.Equal(t, 1, counts[artifact], "one accepted envelope\n%s", dump(events))
	require.Len(t, end.Outputs.Envelopes, 1)
	if k.envelope != "" {
		require.Equal(t, k.envelope, end.Outputs.Envelopes[0].EnvelopeID, "the recorded one")
	}
	requireHas(t, `{"artifactId":"`+end.Outputs.Envelopes[0].EnvelopeID+`"}`, of(events, artifact)[0].Payload)
}

// checkRepeat expects the event that marks a repeated call exactly once; empty expects none. The
// text of a new attempt starts from the beginning.
func checkRepeat(t *testing.T, want string, events []harness.Event) {
	t.Helper()
	text, shown := "", []string(nil)
	for _, e := range events {
		switch e.Type {
		case started:
			text = ""
		case again, logged:
			if strings.Contains(string(e.Payload), `"executor_lost"`) {
				shown = append(shown, e.Type)
			}
		case chunk:
			var p struct{ Chunk string }
			require.NoError(t, json.Unmarshal(e.Payload, &p))
			text += p.Chunk
		}
	}
	if want == "" {
		require.Empty(t, shown, "%s", dump(events))
		return
	}
	require.Equal(t, []string{want}, shown, "%s", dump(events))
	if text != "" {
		require.Equal(t, good, text, "the text must start from the beginning")
	}
}
