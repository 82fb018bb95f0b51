package cold

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// blockBytes is the size of a block's bodies from which on the next frame starts another block. A page
// of events deep in a long run reads one block.
const blockBytes = 256 << 10

// maxBlock limits the memory for a decompressed block: its last frame may have the maximum size, and
// notes.
const maxBlock = 4 * runlog.MaxFrameBytes

// entry is a frame in the index of a block. Sequences and hashes follow from the frames before it.
type entry struct {
	Kind   subject.Kind     `json:"k"`
	Events int              `json:"n,omitempty"`
	Types  []wire.EventType `json:"t,omitempty"`
	Trust  wire.Trust       `json:"u,omitempty"`
	Writer string           `json:"w,omitempty"`
	Note   string           `json:"o,omitempty"`
	Trace  string           `json:"c,omitempty"`
	Pos    uint64           `json:"p"`
	// Stored is in Unix nanoseconds.
	Stored int64 `json:"s"`
	Bytes  int   `json:"b"`
}

// encoder and decoder are shared: they are safe for concurrent use, and large.
var (
	encoder = sync.OnceValue(func() *zstd.Encoder { //nolint:gochecknoglobals // as above
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		if err != nil {
			panic(err) // the options are constant
		}
		return e
	})
	decoder = sync.OnceValue(func() *zstd.Decoder { //nolint:gochecknoglobals // as above
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(maxBlock))
		if err != nil {
			panic(err) // as above
		}
		return d
	})
)

// Encode returns the object of a run's frames, which must be a whole run. Errors: frame.ErrDamaged if
// they are not.
func Encode(frames []*frame.Frame) (*Object, error) {
	var w writer
	for _, f := range frames {
		if err := w.add(f); err != nil {
			return nil, err
		}
	}
	return w.object()
}

// writer makes an object of frames that it is given one after the other.
type writer struct {
	blocks []Block
	chain  frame.Chain
	// open are the frames of the next block, size the bytes of their bodies.
	open []*frame.Frame
	size int
	last *frame.Frame
}

// add adds the next frame. Errors: frame.ErrDamaged if it is not.
func (w *writer) add(f *frame.Frame) error {
	if err := f.Verify(); err != nil {
		return err
	}
	if err := w.chain.Follow(f); err != nil {
		return err
	}
	w.open, w.size, w.last = append(w.open, f), w.size+len(f.Body), f
	if w.size < blockBytes {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	if len(w.open) == 0 {
		return nil
	}
	b, err := encodeBlock(w.open)
	w.blocks, w.open, w.size = append(w.blocks, b), nil, 0
	return err
}

// object returns the object. Errors: frame.ErrDamaged if the last frame does not end a run.
func (w *writer) object() (*Object, error) {
	if w.last == nil || w.last.Kind != subject.End {
		return nil, fmt.Errorf("%w: the run has no end", frame.ErrDamaged)
	}
	err := w.flush()
	return &Object{Run: w.last.Run, Blocks: w.blocks}, err
}

func encodeBlock(frames []*frame.Frame) (Block, error) {
	index := make([]entry, len(frames))
	size := 0
	for i, f := range frames {
		index[i] = entry{
			Kind: f.Kind, Events: f.Last - f.First + 1, Types: f.Types, Trust: f.Trust, Writer: f.Writer, Note: f.Note,
			Trace: f.Trace, Pos: f.Pos, Stored: f.Stored.UnixNano(), Bytes: len(f.Body),
		}
		size += len(f.Body)
	}
	head, err := json.Marshal(index)
	if err != nil {
		return Block{}, fmt.Errorf("index of run %s: %w", frames[0].Run.RunID, err)
	}
	plain := make([]byte, 0, binary.MaxVarintLen64+len(head)+size)
	plain = append(binary.AppendUvarint(plain, uint64(len(head))), head...)
	for _, f := range frames {
		plain = append(plain, f.Body...)
	}
	last := frames[len(frames)-1]
	return Block{Next: last.Last + 1, Pos: last.Pos, Hash: last.Hash, Data: encoder().EncodeAll(plain, nil)}, nil
}

// decodeBlock returns the frames of a block; before is the block before it, the zero Block for the first.
// Errors: frame.ErrDamaged.
func decodeBlock(run subject.Run, before, b Block) ([]*frame.Frame, error) {
	frames, err := readBlock(run, before, b)
	if err != nil {
		return nil, fmt.Errorf("%w: run %s in the cold store: %w", frame.ErrDamaged, run.RunID, err)
	}
	return frames, nil
}

func readBlock(run subject.Run, before, b Block) ([]*frame.Frame, error) {
	plain, err := decoder().DecodeAll(b.Data, nil)
	if err != nil {
		return nil, err
	}
	size, n := binary.Uvarint(plain)
	if n <= 0 || size > uint64(len(plain[n:])) {
		return nil, errors.New("a block without an index")
	}
	head, bodies := plain[n:n+int(size)], plain[n+int(size):] //nolint:gosec // G115: at most the length of plain
	var index []entry
	if err := json.Unmarshal(head, &index); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	if len(index) == 0 {
		return nil, errors.New("a block without frames")
	}
	out := make([]*frame.Frame, len(index))
	prev, next := before.Hash, before.Next
	for i, e := range index {
		if e.Bytes < 0 || e.Bytes > len(bodies) || e.Events < 0 {
			return nil, fmt.Errorf("frame %d does not fit its block", i)
		}
		f := frame.Restore(frame.Frame{
			Run: run, Kind: e.Kind, First: next, Last: next + e.Events - 1, Types: e.Types, Trust: e.Trust, Prev: prev,
			Writer: e.Writer, Note: e.Note, Trace: e.Trace, Body: bodies[:e.Bytes:e.Bytes], Pos: e.Pos, Stored: time.Unix(0, e.Stored).UTC(),
		})
		out[i], bodies = f, bodies[e.Bytes:]
		prev, next = f.Hash, f.Last+1
	}
	if last := out[len(out)-1]; last.Hash != b.Hash || last.Pos != b.Pos || next != b.Next || len(bodies) != 0 {
		return nil, fmt.Errorf("its content gives the hash %s, it was stored with %s", last.Hash, b.Hash)
	}
	return out, nil
}
