package ownership

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Three dispatchers are restarted one after the other under load: no call is repeated, and all
// runs complete.
func TestRolling_RepeatsNoCall(t *testing.T) {
	needsRest(t)
	s := pick(t, size{8, 20, 3 * time.Second}, size{32, 80, 6 * time.Second})
	r := newRig(t, s, same(3)...)
	stop, errs := make(chan struct{}), make(chan error, s.runs)
	var (
		clients sync.WaitGroup
		mu      sync.Mutex // guards r.ids and next
		next    int
	)
	for range s.runs { // each client has one run in progress
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				mu.Lock()
				of := id(next)
				next++
				mu.Unlock()
				run, err := r.create(t.Context(), askOnce, of)
				if err == nil {
					mu.Lock()
					r.ids[of] = run
					mu.Unlock()
					_, err = r.end(t.Context(), run)
				}
				if err != nil {
					errs <- err
					return
				}
			}
		})
	}
	for i, d := range r.dispatchers {
		r.busy(t, i, 1)
		signaled := terminate(t, d)
		ended := exits(t, d, time.Minute)
		d.Launch()
		t.Logf("dispatcher %d drained for %s", i, ended.Sub(signaled).Round(time.Millisecond))
	}
	r.busy(t, len(r.dispatchers)-1, 1)
	close(stop)
	clients.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	events := r.completed(t)
	r.once(t, len(r.ids))
	r.checkOwners(t, events)
}
