package vendor

import (
	"net/http"
	"time"
)

// Call is a request being answered.
type Call struct {
	Recorded
	// Arrived is when the server had read the request's headers.
	Arrived time.Time
	// TooLarge reports that Body holds only the beginning of the request body.
	TooLarge bool
	// closed when the caller disconnects or the server closes
	ended <-chan struct{}
}

// Pause waits for d, or without end if d is negative. It returns false when the caller disconnects
// or the server closes.
func (c Call) Pause(d time.Duration) bool {
	if d == 0 {
		return true
	}
	if d < 0 {
		<-c.ended
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.ended:
		return false
	}
}

// Await waits for a value of steps; nil does not wait. It returns false when the caller disconnects
// or the server closes.
func (c Call) Await(steps <-chan struct{}) bool {
	if steps == nil {
		return true
	}
	select {
	case <-steps:
		return true
	case <-c.ended:
		return false
	}
}

// Begin returns the answer's body, which writes to w and stops at cut. A nil cut does not stop it.
func (c Call) Begin(w http.ResponseWriter, cut *Cut) *Body {
	b := &Body{ResponseWriter: w, call: c, cut: cut}
	if cut != nil {
		b.left = cut.At
	}
	return b
}
