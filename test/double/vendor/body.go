package vendor

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Cut ends a body early.
type Cut struct {
	// At is how many of its bytes are sent. A body that has fewer is whole.
	At int
	// Clean ends it as if it were whole; otherwise the connection is broken off.
	Clean bool
}

// End is how a streamed answer ends.
type End int

// The ends of a stream.
const (
	// EndWhole sends all that belongs to an end.
	EndWhole End = iota
	// EndCut breaks the connection off after the pieces.
	EndCut
	// EndSilent ends the body after the pieces, with nothing that says so.
	EndSilent
	// EndStall sends nothing more after the pieces until the client gives up.
	EndStall
	// EndError sends the vendor's error after the pieces.
	EndError
	// EndOwn is the first of the ends that only one vendor has.
	EndOwn
)

// Body is the body of an answer. What is written after its end is dropped.
type Body struct {
	http.ResponseWriter
	call Call
	cut  *Cut
	left int // until the cut
	over bool
}

var errOver = errors.New("vendor: the body is over")

// Unwrap lets http.ResponseController flush.
func (b *Body) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Write writes as much as there is until the cut.
func (b *Body) Write(p []byte) (int, error) {
	if b.over {
		return 0, errOver
	}
	if b.cut == nil || len(p) < b.left {
		n, err := b.ResponseWriter.Write(p)
		b.left -= n
		b.over = err != nil
		return n, err
	}
	n, err := b.ResponseWriter.Write(p[:b.left])
	if err == nil {
		err = http.NewResponseController(b.ResponseWriter).Flush()
	}
	b.over = true
	if err == nil && !b.cut.Clean {
		panic(http.ErrAbortHandler) // net/http's way to break a connection off
	}
	return n, errors.Join(err, errOver)
}

// Send writes a piece that the caller gets at once.
func (b *Body) Send(piece string) {
	_, err := b.Write([]byte(piece))
	if err == nil {
		err = http.NewResponseController(b.ResponseWriter).Flush()
	}
	b.over = err != nil
}

// Pace waits for what comes before a piece: the interval, and a step of the test's if
// it gives any.
func (b *Body) Pace(interval time.Duration, steps <-chan struct{}) {
	b.over = b.over || !b.call.Pause(interval) || !b.call.Await(steps)
}

// Ends brings about those ends that are the same with all vendors, and reports
// whether nothing more is to be sent.
func (b *Body) Ends(e End) bool {
	switch {
	case b.over, e == EndSilent:
		return true
	case e == EndStall:
		b.call.Pause(-1)
		panic(http.ErrAbortHandler)
	case e == EndCut:
		panic(http.ErrAbortHandler)
	default:
		return false
	}
}

// JSON renders a document of a double's own types, which always works.
func JSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("vendor: " + err.Error())
	}
	return b
}
