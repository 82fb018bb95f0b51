package natsd_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/protocol/subject"
)

// What was written and read leaves the memory after Config.CacheTime, also after a restart of the
// server. Not parallel: it measures the heap.
func TestServer_KeepsBlocksForTheCacheTime(t *testing.T) { //nolint:paralleltest // see above
	s := start(t, func(c *natsd.Config) { c.CacheTime = time.Second })
	js := stream(t, s)
	c, err := js.CreateConsumer(t.Context(), subject.Stream, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy})
	require.NoError(t, err)
	read := make(chan struct{}, 100)
	reading, err := c.Consume(func(jetstream.Msg) { read <- struct{}{} })
	require.NoError(t, err)
	defer reading.Stop()
	before, body := heap(), make([]byte, 1<<20)
	for i := range 60 {
		ack, err := js.Publish(t.Context(), subject.Run{Tenant: "a", WorkflowID: "w", RunID: fmt.Sprint(i)}.Frame(subject.Start), body)
		require.NoError(t, err)
		require.NoError(t, s.OnDisk(t.Context(), subject.Stream, ack.Sequence, true))
		<-read
	}
	began := time.Now()
	require.EventuallyWithT(t, func(c *assert.CollectT) { assert.Less(c, heap()-before, int64(30<<20)) }, patience, 100*time.Millisecond)
	require.Less(t, time.Since(began), natsd.DefaultCacheTime/2, "it was the server's own time")
}

// heap returns the bytes that are in use. What pools hold goes with the third collection.
func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
