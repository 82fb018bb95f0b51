package keyring

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A locked keyring with nobody before it never answers.
func TestWithin_EndsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		began := time.Now()
		_, err := within(t.Context(), func() (string, error) { <-never; return "late", nil })
		require.ErrorContains(t, err, "is it locked")
		require.Equal(t, patience, time.Since(began))
		close(never)
	})
}
