package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/test/double/openaicompat"
	"waybill.dev/waybill/test/fixture"
	"waybill.dev/waybill/test/harness"
	"waybill.dev/waybill/test/sim"
)

// desk is a vendor whose model answers from a fixture's script. A repeated idempotency key gets the
// same answer.
type desk struct {
	*openaicompat.Server

	mu     sync.Mutex // guards the fields below
	script []mock.Entry
	said   map[string]mock.Entry
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{}
	d.Server = openaicompat.New(openaicompat.Options{Models: []string{"mock-mini"}, Answer: d.answer})
	t.Cleanup(d.Close)
	return d
}

func (d *desk) begin(script []mock.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.script, d.said = script, map[string]mock.Entry{}
}

func (d *desk) answer(r openaicompat.Recorded) openaicompat.Reply {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := r.Header.Get("Idempotency-Key")
	e, known := d.said[key]
	if !known && len(d.script) > 0 {
		e, d.script = d.script[0], d.script[1:]
		d.said[key] = e
	}
	reply := openaicompat.Reply{Refusal: e.RefusalText, Usage: &openaicompat.Usage{Prompt: 100, Completion: 50}}
	if e.Content != "" {
		reply.Pieces = []string{e.Content}
	}
	if e.StopReason == "max_tokens" {
		reply.FinishReason = "length"
	}
	return reply
}

// asked returns the number of invocations.
func (d *desk) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.said)
}

// stage is a host with the fixtures, whose models are served by the desk.
type stage struct {
	host *harness.Host
	desk *desk
	n    int
}

const stageKey = "hk_test_steps"

// timeLimit matches the time limit of a fixture's runs. Many have a few seconds, and a restart on a
// busy machine can take longer.
var timeLimit = regexp.MustCompile(`"timeout": [1-9][0-9]*`)

// body returns the request of a fixture. A run that must exceed its own time limit gets enough time
// to start.
func body(f fixture.Fixture) string {
	return strings.Replace(fixture.RequestOf(f.ID).Body(f.ID), `"runTimeoutMs":1000`, `"runTimeoutMs":3000`, 1)
}

func newStage(t *testing.T, all []fixture.Fixture) *stage {
	t.Helper()
	dir := t.TempDir()
	for _, f := range all {
		doc := strings.ReplaceAll(string(f.Document), `"provider": "mock"`, `"provider": "desk"`)
		doc = timeLimit.ReplaceAllString(doc, `"timeout": 600000`)
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.ID+".json"), []byte(doc), 0o600))
	}
	d := newDesk(t)
	host := harness.StartWith(t, harness.Options{
		Args: []string{"--test-seams", "--workflows", dir, "--lease", "200ms", "--provider", "desk=" + d.URL(), "--api-key", stageKey + "=acme:*"},
		Env:  []string{"OPENWOP_CANARY_SECRET_VALUE=the-same-after-each-start"}, // without it each start would generate another value
	})
	return &stage{desk: d, host: host}
}

// do sends a request and requires an answer.
func (s *stage) do(t *testing.T, method, path, body string, headers ...string) *harness.Answer {
	t.Helper()
	a, err := s.host.Client(stageKey).Do(t.Context(), method, path, body, headers...)
	require.NoError(t, err)
	require.Less(t, a.Status, http.StatusBadRequest, "%s %s: %s", method, path, a.Body)
	return a
}

// events returns a run's events after a sequence. It waits a while if there are none.
func (s *stage) events(t *testing.T, run string, after int) (events []wire.Event, ended bool) {
	t.Helper()
	var page harness.Page
	require.NoError(t, s.do(t, http.MethodGet, fmt.Sprintf("/v1/runs/%s/events/poll?timeout=1&lastSequence=%d", run, after), "").JSON(&page))
	events = make([]wire.Event, len(page.Events))
	for i, doc := range page.Events {
		require.NoError(t, json.Unmarshal(doc, &events[i]))
	}
	return events, page.IsComplete
}

// children returns the child runs of a run, recursively.
func (s *stage) children(t *testing.T, run string) []string {
	t.Helper()
	var snap struct{ ChildRuns []struct{ RunID string } }
	require.NoError(t, s.do(t, http.MethodGet, "/v1/runs/"+run, "").JSON(&snap))
	var out []string
	for _, c := range snap.ChildRuns {
		out = append(append(out, c.RunID), s.children(t, c.RunID)...)
	}
	return out
}

// runOf returns the run of a step or a sign: the first run, or the fixture's only child.
func (s *stage) runOf(t *testing.T, run, of string) string {
	t.Helper()
	if of == "" {
		return run
	}
	if all := s.children(t, run); len(all) > 0 {
		return all[0]
	}
	return ""
}

func (s *stage) seen(t *testing.T, run string, sign fixture.Sign) bool {
	t.Helper()
	if run = s.runOf(t, run, sign.Of); run == "" {
		return false
	}
	events, _ := s.events(t, run, -1)
	return slices.ContainsFunc(events, func(e wire.Event) bool {
		return strings.TrimSuffix(string(e.Type)+"@"+e.NodeID, "@") == sign.Event
	})
}

// take executes a step if its signs are in the log.
func (s *stage) take(t *testing.T, run string, step fixture.Step) bool {
	t.Helper()
	if slices.ContainsFunc(step.After, func(sign fixture.Sign) bool { return !s.seen(t, run, sign) }) {
		return false
	}
	of := s.runOf(t, run, step.Of)
	switch step.Do {
	case "answer":
		s.do(t, http.MethodPost, "/v1/runs/"+of+"/interrupts/"+step.Node, `{"resumeValue":`+step.With+`}`)
	case "cancel":
		s.do(t, http.MethodPost, "/v1/runs/"+of+"/cancel", `{"reason":"test"}`)
	default:
		require.Fail(t, "not supported: no fixture needs it", step.Do)
	}
	return true
}

// play runs a fixture to its end. The host is killed when event killAt has been seen: -1 never, 0
// and more by number, the event count after the end.
func (s *stage) play(t *testing.T, f fixture.Fixture, killAt int) (accounts []sim.Account, asked int) {
	t.Helper()
	var script []mock.Entry
	if doc, ok := fixture.Scripts[f.ID]; ok {
		require.NoError(t, json.Unmarshal([]byte(doc), &script))
	}
	s.desk.begin(script)
	var created struct{ RunID string }
	s.n++
	key := fmt.Sprintf("step-%d", s.n)
	require.NoError(t, s.do(t, http.MethodPost, "/v1/runs", body(f), "Idempotency-Key", key).JSON(&created))
	run, steps := created.RunID, f.Steps()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for seen := 0; ; {
		after := seen - 1
		if len(steps) > 0 { // its sign may be in another run's log
			after = max(after-1, -1)
		}
		events, ended := s.events(t, run, after)
		seen = after + 1 + len(events)
		if killAt >= 0 && seen > killAt {
			killAt = -1
			s.host.Restart()
			continue
		}
		if ended && len(steps) == 0 {
			break
		}
		if len(steps) > 0 && s.take(t, run, steps[0]) {
			steps = steps[1:]
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.Fail(t, "the run does not end", "%s: %s after %d events", f.ID, run, seen)
		}
	}
	for _, id := range append([]string{run}, s.children(t, run)...) {
		accounts = append(accounts, s.account(ctx, t, id).Anonymous())
	}
	return accounts, s.desk.asked()
}

// account returns the account of a run once it has ended.
func (s *stage) account(ctx context.Context, t *testing.T, run string) sim.Account {
	t.Helper()
	_, err := s.host.Client(stageKey).Finish(ctx, run)
	require.NoError(t, err)
	events, _ := s.events(t, run, -1)
	return sim.AccountOf(&wire.RunRecord{RunID: run}, events)
}

// everyStep reports whether the host is killed at each event of each fixture, instead of at a
// sample.
func everyStep() bool { return os.Getenv("KILL_STEPS") == "all" }

// sample is the ratio of fixtures to those that every test run kills.
const sample = 3

// Killing the host at any event of any fixture changes only times.
func TestSteps_KillingTheHostAtAnEventChangesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, kills real processes: run without -short")
	}
	all := fixture.All(t)
	const stages = 2
	for n := range stages {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s, kills := newStage(t, all), 0
			for i, f := range all {
				if i%stages != n || !everyStep() && i%sample != 0 {
					continue
				}
				want, asked := s.play(t, f, -1)
				first, last := 0, len(want[0].Events)-1
				if !everyStep() {
					first = i * 7 % (last + 1)
					last = first
				}
				for k := first; k <= last; k++ {
					got, again := s.play(t, f, k)
					kills++
					require.Empty(t, sim.Differ(want, got), "%s, killed at event %d", f.ID, k)
					require.Equal(t, asked, again, "%s, killed at event %d: invocations of the model", f.ID, k)
				}
			}
			t.Logf("killed %d times", kills)
		})
	}
}
