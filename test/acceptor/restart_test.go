package acceptor

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/test/harness"
)

// The acceptor restarts under load without a lost or duplicate envelope. Each acknowledged envelope
// is in the log once, and a repeated call returns the same bytes.
func TestRestart_UnderLoadLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	const (
		writers = 6 // two per run, so that they also race for its head
		kills   = 5
	)
	perWriter := number(t, "RESTART_ENVELOPES", 60)
	url := broker(t)
	h := harness.Serve(t, "acceptor", "--nats", url)
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	runOf := func(writer int) string { return fmt.Sprintf("run-%d", writer/2) }
	for w := 0; w < writers; w += 2 {
		require.NoError(t, opened(ctx, client, runOf(w)))
	}

	type taken struct{ run, id, outcome string }
	var (
		mu    sync.Mutex
		acked []taken
		wg    sync.WaitGroup
	)
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acked)
	}
	for w := range writers {
		wg.Go(func() {
			for i := range perWriter {
				id := fmt.Sprintf("c-%d-%d", w, i)
				outcome, err := emitted(ctx, client, runOf(w), envelope(id, id))
				if err != nil {
					t.Errorf("accept %s: %v", id, err)
					return
				}
				mu.Lock()
				acked = append(acked, taken{runOf(w), id, outcome})
				mu.Unlock()
			}
		})
	}
	for k := 1; k <= kills; k++ {
		require.Eventually(t, func() bool { return count() >= k*writers*perWriter/(kills+1) || t.Failed() }, 10*time.Minute, time.Millisecond)
		h.Restart()
	}
	wg.Wait()
	require.False(t, t.Failed())
	require.Len(t, acked, writers*perWriter)

	h.Restart() // only the log survives
	log := runs(t, url)
	want := map[string]map[string]int{}
	for _, a := range acked {
		if want[a.run] == nil {
			want[a.run] = map[string]int{}
		}
		want[a.run][a.id] = 1
	}
	for run, ids := range want {
		require.Equal(t, ids, recorded(t, log, run), run)
	}
	end, err := log.End(ctx)
	require.NoError(t, err)
	for _, a := range acked {
		again, err := emitted(ctx, client, a.run, envelope(a.id, "said otherwise"))
		require.NoError(t, err)
		require.Equal(t, a.outcome, again, a.id)
	}
	after, err := log.End(ctx)
	require.NoError(t, err)
	require.Equal(t, end, after, "a repeated call must record nothing")
}
