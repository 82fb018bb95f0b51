package engine

import (
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// claim is a session's ownership of its run. The first frame of the session records it in the log;
// see frame.Ownership.
type claim struct {
	run subject.Run
	// process is the owner. It keeps the id that the process had when the session began.
	process string
	// writer identifies the frames of the session.
	writer string
	epoch  uint64
	// head is the end of the log as far as the session has read or written it.
	head frame.Head
}

// newClaim returns the claim of a session that starts at a head of the log.
func newClaim(r subject.Run, process, writer string, head frame.Head) claim {
	return claim{run: r, process: process, writer: writer, epoch: head.Epoch + 1, head: head}
}

// isHeld reports that the log contains the claim.
func (c claim) isHeld() bool { return c.head.Owner == c.process && c.head.Epoch == c.epoch }

// entry returns the session's next entry in the log. It claims the run, or gives it up with
// release.
func (c claim) entry(to appendFunc, release bool) entry {
	return entry{writer: frame.Claimed(c.writer, c.epoch, release), run: c.run, head: c.head, append: to}
}

// releaseFrame returns a frame without events that gives the run up.
func (c claim) releaseFrame(kind subject.Kind) *frame.Frame {
	return frame.New(c.run, kind, c.head, nil).By(frame.Claimed(c.writer, c.epoch, true))
}

// headAfter returns the end of the log after a frame that was appended at head.
func headAfter(head frame.Head, f *frame.Frame) frame.Head {
	next := f.Head()
	next.Ownership = head.After(f)
	return next
}
