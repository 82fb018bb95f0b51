package ownership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The redactor and the acceptor are away while answers arrive: no call is repeated.
func TestRestart_OfServicesThatRecordAnswersRepeatsNoCall(t *testing.T) {
	s := pick(t, size{8, 16, time.Second}, size{32, 64, 6 * time.Second})
	together(t)
	r := newRig(t, s, same(2)...)
	release := r.hold()
	r.start(t, classify, s.runs)
	r.busy(t, 0, s.slots)
	r.busy(t, 1, s.slots)
	r.redactor.Kill() // the first pieces of each answer are on their way
	r.acceptor.Kill()
	release()
	require.Eventually(t, func() bool {
		return len(r.calls(func(c call) bool { return c.answered })) >= s.runs
	}, time.Minute, 5*time.Millisecond, "the model answers all")
	r.redactor.Launch()
	require.Never(t, func() bool { return len(r.calls(nil)) > s.runs }, 2*time.Second, 20*time.Millisecond, "no call is repeated while the acceptor is away")
	r.acceptor.Launch()
	r.completed(t)
	r.once(t, s.runs)
}
