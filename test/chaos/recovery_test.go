package chaos

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/test/chaos/journal"
	"waybill.dev/waybill/test/harness"
)

// talkKey may use the test models, whose answers take a given time.
const talkKey = "hk_test_4b8d20c7e95f1a63"

const talkWorkflow = `{"id":"chaos-talk","name":"n","version":"1","nodes":[{"id":"ai","typeId":"core.ai.callPrompt","name":"n","position":{"x":0,"y":0},"config":{},"inputs":{}}],` +
	`"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`

// talk is a run that takes three seconds and appends all the time.
const talk = `{"workflowId":"chaos-talk","configurable":{"mockProvider":{"id":"stream-text","config":{"delayMsPerToken":100,"tokens":[` +
	`"a","b","c","d","e","f","g","h","i","j","k","l","m","n","o","p","q","r","s","t","u","v","w","x","y","z","a","b","c","d"]}}}}`

// Another dispatcher takes over the runs of a dead one after its lease.
func TestFault_ADispatcherDiesAndItsRunsGoOn(t *testing.T) {
	s := newSpread(t, harness.Options{Args: []string{"--test-seams", "--api-key", journal.Key + "=default:*", "--api-key", talkKey + "=default:*"}})
	a, err := s.Client(talkKey).Do(t.Context(), http.MethodPost, "/v1/workflows", talkWorkflow)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if a, err := s.Client(talkKey).Do(ctx, http.MethodPost, "/v1/runs", talk); err == nil && a.Status == http.StatusCreated {
					_, _ = s.Client(talkKey).Finish(ctx, runID(t, a))
				}
			}
		})
	}
	var kills []time.Time
	for range 2 * rounds(t) {
		wait(t, 5*time.Second)
		name := s.any(t, "dispatcher")
		s.signal(t, name, syscall.SIGKILL)
		kills = append(kills, time.Now())
	}
	wait(t, 5*time.Second)
	cancel()
	wg.Wait()
	s.whole(t)
	logs := journal.Frames(t, s.NATS)
	var took []time.Duration
	for _, frames := range logs {
		require.NoError(t, frame.VerifyChain(frames))
		for _, killed := range kills {
			if d := takenUp(frames, killed); d > 0 {
				took = append(took, d)
			}
		}
	}
	require.NotEmpty(t, took, "a killed dispatcher had runs")
	slices.Sort(took)
	at := func(p int) time.Duration { return took[min(len(took)*p/100, len(took)-1)].Round(time.Millisecond) }
	t.Logf("%d kills of a dispatcher, %d runs taken up by another: p50 %s, p99 %s, longest %s (lease %s)", len(kills), len(took), at(50), at(99), took[len(took)-1].Round(time.Millisecond), lease)
	require.Less(t, at(50), 20*lease, fmt.Sprint(took))
}

// takenUp returns the time until another process continued a run that had an owner at this instant;
// 0 if none was needed.
func takenUp(frames []*frame.Frame, killed time.Time) time.Duration {
	owner := ""
	for _, f := range frames {
		switch {
		case f.Writer == "" || f.Kind.Begins():
		case f.Stored.Before(killed):
			owner = f.Writer
		case owner == "" || f.Writer == owner:
			return 0
		default:
			return f.Stored.Sub(killed)
		}
	}
	return 0
}
