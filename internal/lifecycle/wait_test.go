package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/lifecycle"
)

func TestWait_EndsWithTheTimeOrTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.True(t, lifecycle.Wait(t.Context(), time.Minute))
		require.Equal(t, time.Minute, time.Since(began))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		require.False(t, lifecycle.Wait(ctx, time.Minute))
		require.Equal(t, time.Second, time.Since(began))
	})
}
