package telemetry

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The SDK's timer for spans spins at a delay of 0. A time limit of 0 is none (SDK specification,
// Timeout).
func TestBatches_OfZeroDoNotSpin(t *testing.T) {
	t.Parallel()
	s, err := Read(Flags{}, []string{
		"OTEL_BSP_SCHEDULE_DELAY=0", "OTEL_BSP_EXPORT_TIMEOUT=0", "OTEL_BSP_MAX_QUEUE_SIZE= 7 ", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=3",
		"OTEL_BLRP_SCHEDULE_DELAY=0", "OTEL_METRIC_EXPORT_TIMEOUT=0",
	})
	require.NoError(t, err)
	var got sdktrace.BatchSpanProcessorOptions
	for _, option := range s.batches.spans {
		option(&got)
	}
	require.Equal(t, sdktrace.BatchSpanProcessorOptions{
		BatchTimeout: time.Millisecond, ExportTimeout: maxNumber * time.Millisecond, MaxQueueSize: 7, MaxExportBatchSize: 3,
	}, got)
	require.Len(t, s.batches.logs, 1)
	require.Len(t, s.batches.metrics, 1)
}
