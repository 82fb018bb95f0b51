package ownership

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Parallel branches: two calls of each run are in flight, and a third branch must be recorded, while a
// service of the host is away. No dispatcher is lost, so no call is repeated and none fails.
func TestOutage_CostsNoCallOfAnotherBranch(t *testing.T) {
	s := pick(t, size{8, 6, 100 * time.Millisecond}, size{32, 32, 10 * time.Second})
	together(t)
	r := newRig(t, s, same(1)...)
	release := sync.OnceFunc(r.hold())
	t.Cleanup(release) // the servers of a failed test wait for their calls
	r.start(t, branches, s.runs)
	r.busy(t, 0, 2*s.runs)
	r.redactor.Kill()
	outage := time.NewTimer(branchWait + 4*time.Second) // longer than the retries of one request
	<-outage.C
	require.Len(t, r.calls(nil), 2*s.runs, "the outage began before the third calls")
	r.redactor.Launch()
	r.busy(t, 0, 3*s.runs)
	release()
	events := r.completed(t)

	r.once(t, 3*s.runs)
	for id, list := range events {
		for _, e := range list {
			require.NotEqual(t, "node.retried", e.Type, "%s: %s", id, e.Payload)
		}
	}
}
