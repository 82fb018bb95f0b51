package keyring

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A locked keyring never answers if its prompt is ignored.
func TestWithin_EndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		began := time.Now()
		_, err := within(t.Context(), func() (string, error) { <-never; return "late", nil })
		require.ErrorContains(t, err, "unlock it")
		require.Equal(t, patience, time.Since(began))
		close(never)
	})
}
