package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPickupFigures_ARepeatedCallMissesTheTarget(t *testing.T) {
	t.Parallel()
	for repeated, met := range map[int]bool{0: true, 1: false} {
		row := pickupRow{
			dispatchers: 2,
			idle:        samples{time.Millisecond, 2 * time.Millisecond},
			saturated:   samples{modelTakes},
			repeated:    repeated,
		}
		figures := row.figures()
		require.Len(t, figures, 3)
		require.Equal(t, "1.00 ms, 2.00 ms of 2 runs", figures[0].measured)
		require.Equal(t, met, figures[2].met)
	}
}
