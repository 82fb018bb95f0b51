package vendor

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// Cut ends a body early.
type Cut struct {
	// At is the number of bytes to send. A shorter body is sent whole.
	At int
	// Clean ends the body normally. Otherwise the connection is closed in the middle of the body.
	Clean bool
}

// End is how a streamed answer ends.
type End int

// The ends of a stream.
const (
	// EndWhole sends the normal end.
	EndWhole End = iota
	// EndCut closes the connection after the pieces.
	EndCut
	// EndSilent ends the body after the pieces, without the final event.
	EndSilent
	// EndStall sends nothing more after the pieces until the client gives up.
	EndStall
	// EndError sends the vendor's error after the pieces.
	EndError
	// EndOwn is the first value for an end that only one vendor has.
	EndOwn
)

// Body is the body of an answer. It drops writes after its end.
type Body struct {
	http.ResponseWriter
	call Call
	cut  *Cut
	left int // bytes until the cut
	over bool
}

var errOver = errors.New("vendor: the body is over")

// Unwrap lets http.ResponseController flush.
func (b *Body) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// Write writes up to the cut.
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
		panic(http.ErrAbortHandler) // net/http closes the connection on this panic
	}
	return n, errors.Join(err, errOver)
}

// Send writes a piece and flushes it.
func (b *Body) Send(piece string) {
	_, err := b.Write([]byte(piece))
	if err == nil {
		err = http.NewResponseController(b.ResponseWriter).Flush()
	}
	b.over = err != nil
}

// Pace waits before a piece: for the interval, and for one value of steps unless that is nil.
func (b *Body) Pace(interval time.Duration, steps <-chan struct{}) {
	b.over = b.over || !b.call.Pause(interval) || !b.call.Await(steps)
}

// Ends carries out the ends that all vendors share. It reports whether the answer is over.
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

// JSON renders a document of a double's own types. It panics if that fails.
func JSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("vendor: " + err.Error())
	}
	return b
}
