// Package frame defines the unit of the run log: the events that one step of a run appended, all or
// none.
//
// The body of a run's first frame is its record, that of the frame that seals it a Sealing, that of the
// frame that erases it an Erasure. The body of every other frame is the JSON array of its events. The
// headers allow filtering without parsing the body. They also chain each frame to the previous one by
// hash, so that a scrubber finds a flipped bit.
package frame

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Names of the headers of a frame.
const (
	HeaderFirst = "Waybill-First" // sequence of the first event
	HeaderLast  = "Waybill-Last"  // sequence of the last event; First-1 in an empty frame
	HeaderTypes = "Waybill-Types" // event types, comma separated
	HeaderTrust = "Waybill-Trust" // untrusted when any event is
	HeaderPrev  = "Waybill-Prev"  // hash of the run's previous frame; absent on start
	HeaderHash  = "Waybill-Hash"  // hash of this frame
	// HeaderWriter distinguishes frames with equal content by different writers.
	HeaderWriter = "Waybill-Writer"
	// HeaderNote holds a Note as one line of JSON; absent if there is none.
	HeaderNote = "Waybill-Note"
	// HeaderTrace is the W3C trace context of the run. It is for readers that trace
	// their own work; the hash does not cover it.
	HeaderTrace = "traceparent"
)

// Frame is one message of the run log.
type Frame struct {
	Run   subject.Run
	Kind  subject.Kind
	First int
	Last  int
	Types []wire.EventType
	Trust wire.Trust
	Prev  string
	Hash  string
	// Writer identifies who appended the frame; empty for frames of the acceptor. Two dispatchers
	// that race for a run can produce the same events in the same millisecond: without Writer, both
	// would take the frame in the log for their own. A session that owns the run adds a claim; see
	// Claimed.
	Writer string
	// Note holds state of the run that no event expresses: JSON on one line, empty for none.
	Note string
	// Trace is the traceparent of the process that appended the frame; empty if none.
	Trace string
	Body  []byte

	// Pos is the position in the stream; 0 before the frame is stored.
	Pos uint64
	// Stored is when the log stored the frame; zero before.
	Stored time.Time
}

// Head is the end of a run's log: what the next append must expect.
type Head struct {
	Pos  uint64 // stream position of the last frame; 0 means the run has none
	Hash string // hash of the last frame
	Next int    // sequence of the next event
	// Ownership defines who may execute the run. Frame.Head leaves it empty, because a single frame
	// may not determine it: fold it over the run's frames with Ownership.After.
	Ownership
}

// Head returns the end of the log once f is stored.
func (f *Frame) Head() Head { return Head{Pos: f.Pos, Hash: f.Hash, Next: f.Last + 1} }

// NewStart returns the first frame of a run, from its record's JSON.
func NewStart(run subject.Run, record []byte) *Frame { return first(run, subject.Start, record) }

// NewOpen returns the first frame of a run that an external executor drives.
func NewOpen(run subject.Run, record []byte) *Frame { return first(run, subject.Open, record) }

func first(run subject.Run, kind subject.Kind, record []byte) *Frame {
	f := &Frame{Run: run, Kind: kind, First: 0, Last: -1, Trust: wire.Trusted, Body: record}
	f.Hash = f.sum()
	return f
}

// New returns the frame that appends events after head. The events must have the sequences from
// head.Next on.
func New(run subject.Run, kind subject.Kind, head Head, events []wire.Event) *Frame {
	f := &Frame{
		Run: run, Kind: kind, First: head.Next, Last: head.Next + len(events) - 1,
		Trust: wire.Trusted, Prev: head.Hash, Body: wire.AppendEvents(nil, events),
	}
	for _, e := range events {
		f.Types = append(f.Types, e.Type)
		f.Trust = f.Trust.Meet(e.ContentTrust)
	}
	f.Hash = f.sum()
	return f
}

// ExternalPrefix starts the writer name of a change that does not come from the session that executes
// the run, such as an answer or a cancellation. The session reads the frame and continues after it.
const ExternalPrefix = "beside-"

// By sets the frame's writer.
func (f *Frame) By(writer string) *Frame {
	f.Writer = writer
	f.Hash = f.sum()
	return f
}

// With sets the frame's note.
func (f *Frame) With(note string) *Frame {
	f.Note = note
	f.Hash = f.sum()
	return f
}

// In sets the frame's trace.
func (f *Frame) In(traceparent string) *Frame {
	f.Trace = traceparent
	return f
}

// sum returns the hash of the frame's content.
func (f *Frame) sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%d\n%d\n%s\n%s\n%s\n", f.Prev, f.Run.Frame(f.Kind), f.First, f.Last, f.typeList(), f.Trust, f.Writer)
	if f.Note != "" {
		fmt.Fprintf(h, "%s\n", f.Note)
	}
	h.Write(f.Body)
	return hex.EncodeToString(h.Sum(nil))
}

func (f *Frame) typeList() string {
	var b strings.Builder
	for i, t := range f.Types {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(t))
	}
	return b.String()
}

// Headers returns the frame's headers as a flat map.
func (f *Frame) Headers() map[string]string {
	h := map[string]string{
		HeaderFirst: strconv.Itoa(f.First),
		HeaderLast:  strconv.Itoa(f.Last),
		HeaderTrust: string(f.Trust),
		HeaderHash:  f.Hash,
	}
	if len(f.Types) > 0 {
		h[HeaderTypes] = f.typeList()
	}
	if f.Prev != "" {
		h[HeaderPrev] = f.Prev
	}
	if f.Writer != "" {
		h[HeaderWriter] = f.Writer
	}
	if f.Note != "" {
		h[HeaderNote] = f.Note
	}
	if f.Trace != "" {
		h[HeaderTrace] = f.Trace
	}
	return h
}

// Parse reads a stored frame. get returns the value of a header or "".
func Parse(subj string, get func(string) string, body []byte) (*Frame, error) {
	run, kind, err := subject.Parse(subj)
	if err != nil {
		return nil, err
	}
	first, err1 := strconv.Atoi(get(HeaderFirst))
	last, err2 := strconv.Atoi(get(HeaderLast))
	if err1 != nil || err2 != nil || first < 0 || last < first-1 {
		return nil, fmt.Errorf("frame %s: headers %s and %s must be sequences", subj, HeaderFirst, HeaderLast)
	}
	f := &Frame{
		Run: run, Kind: kind, First: first, Last: last, Trust: wire.Trust(get(HeaderTrust)),
		Prev: get(HeaderPrev), Hash: get(HeaderHash), Writer: get(HeaderWriter), Note: get(HeaderNote), Trace: get(HeaderTrace), Body: body,
	}
	if list := get(HeaderTypes); list != "" {
		for t := range strings.SplitSeq(list, ",") {
			f.Types = append(f.Types, wire.EventType(t))
		}
	}
	return f, nil
}

// ErrDamaged means that a frame's content does not match its hash, or the chain is broken.
var ErrDamaged = errors.New("frame damaged")

// Restore returns a stored frame with the hash of its content. The caller compares the hash of the last
// frame of a chain, which covers all of them.
func Restore(f Frame) *Frame {
	f.Hash = f.sum()
	return &f
}

// Verify checks the frame against its own hash.
func (f *Frame) Verify() error {
	if got := f.sum(); got != f.Hash {
		return fmt.Errorf("%w: %s at %d: hash is %s, content gives %s", ErrDamaged, f.Run.RunID, f.Pos, f.Hash, got)
	}
	return nil
}

// VerifyChain checks the frames of one run in order: hashes, links, and
// sequences contiguous from 0.
func VerifyChain(frames []*Frame) error {
	var c Chain
	for _, f := range frames {
		if err := f.Verify(); err != nil {
			return err
		}
		if err := c.Follow(f); err != nil {
			return err
		}
	}
	return nil
}

// Chain is the position up to which a run's frames were verified; the zero value is before the
// first
// frame.
type Chain struct {
	hash string
	next int
}

// Follow checks that a frame with a valid hash links to the previous one.
func (c *Chain) Follow(f *Frame) error {
	if f.Prev != c.hash || f.First != c.next {
		return fmt.Errorf("%w: %s at %d: prev %q first %d, want %q and %d", ErrDamaged, f.Run.RunID, f.Pos, f.Prev, f.First, c.hash, c.next)
	}
	c.hash, c.next = f.Hash, f.Last+1
	return nil
}

// Record reads the run's record from its first frame.
func (f *Frame) Record() (*wire.RunRecord, error) {
	if !f.Kind.Begins() {
		return nil, fmt.Errorf("frame %s is %s, not the first", f.Run.RunID, f.Kind)
	}
	return wire.ParseRunRecord(f.Body)
}

// RunOf returns the run that a record is of.
func RunOf(rec *wire.RunRecord) subject.Run {
	return subject.Run{Tenant: rec.Owner.Tenant, WorkflowID: rec.WorkflowID, RunID: rec.RunID}
}

// Events reads the frame's events; none for a run's first frame, and for those that seal and erase it.
func (f *Frame) Events() ([]wire.Event, error) {
	if f.Kind.Begins() || f.Kind == subject.Seal || f.Kind == subject.Erase {
		return nil, nil
	}
	return wire.ParseEvents(f.Body)
}
