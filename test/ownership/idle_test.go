package ownership

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// sent is how many messages the dispatchers have sent to NATS.
func (r *rig) sent(t *testing.T) (n int64) {
	t.Helper()
	all, err := r.nats.Connz(&server.ConnzOptions{})
	require.NoError(t, err)
	found := false
	for _, c := range all.Conns {
		if strings.Contains(c.Name, "dispatcher") {
			n, found = n+c.InMsgs, true
		}
	}
	require.True(t, found, "the dispatcher's connection has its name")
	return n
}

// A dispatcher that waits for the models of many runs sends few messages to NATS.
func TestIdle_SendsFewMessages(t *testing.T) {
	needsRest(t)
	const (
		period = 22 * time.Second // between two heartbeats of a run
		window = 2 * period
		most   = 50 // messages a second
	)
	s := pick(t, size{1024, 1000, 2 * time.Minute}, size{1024, 1000, 2 * time.Minute})
	for name, args := range map[string][]string{"default lease": nil, "lease of 15 s": {"--lease", "15s"}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, s, args)
			r.start(t, askOnce, s.runs)
			r.busy(t, 0, s.runs)
			before, began := r.sent(t), time.Now()
			<-time.After(window) // what is measured
			sent, took := int(r.sent(t)-before), time.Since(began)
			require.Equal(t, s.runs, r.active("d0"), "all calls are still in progress")
			t.Logf("%d runs in progress: %d messages to NATS in %s", s.runs, sent, took.Round(time.Second))
			require.Less(t, float64(sent), most*took.Seconds())
		})
	}
}
