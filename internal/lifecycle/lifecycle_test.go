package lifecycle_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// diary notes the order in which parts stop.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, s)
}

func (d *diary) part(name string) lifecycle.Part {
	return lifecycle.Part{
		Name: name,
		Run:  func(ctx context.Context) error { <-ctx.Done(); d.note(name + " ended"); return ctx.Err() },
		Stop: func(context.Context) { d.note(name + " stops") },
	}
}

func TestGroup_StopsInReverseOneByOne(t *testing.T) {
	t.Parallel()
	var g lifecycle.Group
	var d diary
	g.Start(d.part("store"))
	g.Start(d.part("door"))
	require.NoError(t, g.Stop())
	require.Equal(t, []string{"door stops", "door ended", "store stops", "store ended"}, d.lines)
	require.NoError(t, g.Stop(), "twice is safe")
}

func TestGroup_TheFirstErrorEndsAllParts(t *testing.T) {
	t.Parallel()
	var g lifecycle.Group
	var d diary
	boom := errors.New("boom")
	g.Start(d.part("store"))
	g.Start(lifecycle.Part{Name: "broken", Run: func(context.Context) error { return boom }})
	err := g.Wait(t.Context())
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "broken")
	require.Contains(t, d.lines, "store ended")
}

func TestGroup_WaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var g lifecycle.Group
	var d diary
	g.Start(d.part("store"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, g.Wait(ctx))
	require.Equal(t, []string{"store stops", "store ended"}, d.lines)
}

func TestGroup_APartThatEndsByItselfIsAFailure(t *testing.T) {
	t.Parallel()
	var g lifecycle.Group
	g.Start(lifecycle.Part{Name: "short", Run: func(context.Context) error { return nil }})
	require.ErrorContains(t, g.Wait(t.Context()), "short ended by itself")
}

func TestGroup_StopWithoutStartIsSafe(t *testing.T) {
	t.Parallel()
	var g lifecycle.Group
	require.NoError(t, g.Stop())
}
