package vendor

import (
	"net/http"
	"time"
)

// Call is a request being answered.
type Call struct {
	Recorded
	// Arrived is when the request's headers were there.
	Arrived time.Time
	// TooLarge says that Body is only the beginning of what was sent.
	TooLarge bool
	// ended is closed when the caller goes away or the server closes.
	ended <-chan struct{}
}

// Pause waits for d, for ever if that is negative; false when the caller went away
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

// Await waits until steps gives a value, not at all if that is nil; false when the
// caller went away or the server closes.
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

// Begin gives the body of the answer, which goes out by w and stops at cut, if any.
func (c Call) Begin(w http.ResponseWriter, cut *Cut) *Body {
	b := &Body{ResponseWriter: w, call: c, cut: cut}
	if cut != nil {
		b.left = cut.At
	}
	return b
}
