package telemetry

import (
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Suffixes of the variables of batches.
const (
	queueSize  = "MAX_QUEUE_SIZE"
	batchSize  = "MAX_EXPORT_BATCH_SIZE"
	batchDelay = "SCHEDULE_DELAY"
	batchLimit = "EXPORT_TIMEOUT"
)

// batches are the options of what collects spans, log records and metrics until they are exported.
type batches struct {
	spans   []sdktrace.BatchSpanProcessorOption
	logs    []sdklog.BatchProcessorOption
	metrics []sdkmetric.PeriodicReaderOption
}

// readBatches reads the variables of batches. The SDK reads the same ones, but its timer for spans
// spins at a delay of 0, and the other timers replace 0 by their defaults.
func (v *variables) readBatches() batches {
	var b batches
	for suffix, option := range map[string]func(int) sdktrace.BatchSpanProcessorOption{
		queueSize:  sdktrace.WithMaxQueueSize,
		batchSize:  sdktrace.WithMaxExportBatchSize,
		batchDelay: func(n int) sdktrace.BatchSpanProcessorOption { return sdktrace.WithBatchTimeout(delay(n)) },
		batchLimit: func(n int) sdktrace.BatchSpanProcessorOption { return sdktrace.WithExportTimeout(timeout(n)) },
	} {
		if n, set := v.number("OTEL_BSP_" + suffix); set {
			b.spans = append(b.spans, option(n))
		}
	}
	for suffix, option := range map[string]func(int) sdklog.BatchProcessorOption{
		queueSize:  sdklog.WithMaxQueueSize,
		batchSize:  sdklog.WithExportMaxBatchSize,
		batchDelay: func(n int) sdklog.BatchProcessorOption { return sdklog.WithExportInterval(delay(n)) },
		batchLimit: func(n int) sdklog.BatchProcessorOption { return sdklog.WithExportTimeout(timeout(n)) },
	} {
		if n, set := v.number("OTEL_BLRP_" + suffix); set {
			b.logs = append(b.logs, option(n))
		}
	}
	if n, set := v.number(varInterval); set {
		b.metrics = append(b.metrics, sdkmetric.WithInterval(delay(n)))
	}
	if n, set := v.number(varWait); set {
		b.metrics = append(b.metrics, sdkmetric.WithTimeout(timeout(n)))
	}
	return b
}

// delay returns a time between two exports, at least a millisecond.
func delay(milliseconds int) time.Duration {
	return max(time.Duration(milliseconds)*time.Millisecond, time.Millisecond)
}
