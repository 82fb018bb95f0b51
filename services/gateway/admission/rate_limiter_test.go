package admission_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/gateway/admission"
)

func TestTake_CountsEachNameOnItsOwn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	th := admission.NewRateLimiter(0.5, 2, func() time.Time { return now })
	for range 2 {
		_, wait := th.Take("one")
		require.Zero(t, wait)
	}
	_, wait := th.Take("one")
	require.Equal(t, 2*time.Second, wait)
	_, wait = th.Take("other")
	require.Zero(t, wait)
	now = now.Add(2 * time.Second)
	_, wait = th.Take("one")
	require.Zero(t, wait, "what was refused was not counted")
}

func TestTake_UndoneDoesNotCount(t *testing.T) {
	t.Parallel()
	th := admission.NewRateLimiter(0.01, 1, func() time.Time { return time.Unix(1000, 0) })
	for range 5 {
		undo, wait := th.Take("one")
		require.Zero(t, wait)
		undo()
	}
	_, wait := th.Take("one")
	require.Zero(t, wait)
	_, wait = th.Take("one")
	require.Positive(t, wait)
}

func TestTake_WithoutALimitAdmitsAll(t *testing.T) {
	t.Parallel()
	th := admission.NewRateLimiter(0, 1, time.Now)
	for range 100 {
		_, wait := th.Take("one")
		require.Zero(t, wait)
	}
}
