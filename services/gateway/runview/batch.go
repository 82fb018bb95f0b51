package runview

import (
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// MaxBufferMs is the maximum of bufferMs.
const MaxBufferMs = 5000

// CheckBuffer rejects a bufferMs out of range; it is not clamped.
func CheckBuffer(ms int32) error {
	if ms < 0 || ms > MaxBufferMs {
		return fault.InvalidQuery("bufferMs", "want an integer from 0 to %d", MaxBufferMs)
	}
	return nil
}

// Item is an item of a stream: the id, name and data of an SSE frame.
type Item struct {
	Sequence int
	Name     string
	Data     []byte
}

// Batch collects items until it is flushed. The zero value is empty.
type Batch struct {
	data []byte
	last int
}

// Add adds a document to the batch. urgent means that the batch must be flushed immediately,
// because the run has ended or waits.
func (b *Batch) Add(sequence int, t wire.EventType, doc []byte) (urgent bool) {
	if len(b.data) == 0 {
		b.data = append(b.data, '[')
	} else {
		b.data = append(b.data, ',')
	}
	b.data = append(b.data, doc...)
	b.last = sequence
	return t.Terminal() || t == wire.EventNodeSuspended
}

// Empty reports whether there is nothing to flush.
func (b *Batch) Empty() bool { return len(b.data) == 0 }

// Flush returns the batch as one item and empties it.
func (b *Batch) Flush() Item {
	it := Item{Sequence: b.last, Name: NameBatch, Data: append(b.data, ']')}
	*b = Batch{}
	return it
}
