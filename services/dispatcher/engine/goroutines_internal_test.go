package engine

import (
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// goroutine returns the name of the calling goroutine.
func goroutine() string {
	b := make([]byte, 64)
	name, _, _ := strings.Cut(string(b[:runtime.Stack(b, false)]), "[")
	return name
}

// Consecutive effects share a goroutine, concurrent ones do not, and none outlives the session.
func TestGoroutines_ReusesTheGoroutineOfAnEndedEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		g := newGoroutines(stopped)
		on := func() (name string) {
			g.run(func() { name = goroutine() })
			synctest.Wait()
			return name
		}
		first := on()
		require.NotEqual(t, goroutine(), first)
		require.Equal(t, first, on())

		together := func() map[string]bool {
			var mu sync.Mutex
			names, hold := map[string]bool{}, make(chan struct{})
			for range 5 {
				g.run(func() {
					mu.Lock()
					names[goroutine()] = true
					mu.Unlock()
					<-hold
				})
			}
			synctest.Wait()
			close(hold)
			synctest.Wait()
			return names
		}
		names := together()
		require.Len(t, names, 5)
		require.Contains(t, names, first)
		again := together()
		require.Len(t, again, 5)
		maps.DeleteFunc(again, func(name string, _ bool) bool { return !names[name] })
		require.Len(t, again, 1, "one goroutine waits for the next effect, the others have ended")
		close(stopped)
		g.wait()
	})
}
