package machine

import (
	"slices"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// pending is the content of the next frame: its events, which are applied to the state and not
// appended yet, and its note.
type pending struct {
	events []wire.Event
	// clean reports for each event that it contains only ids and numbers, which cannot be secrets.
	clean []bool
	// bytes counts the payload bytes of the events.
	bytes int
	// external is the number of events that came from outside, before Advance derived others.
	// externalKind is the kind of the frame that they make by themselves.
	external     int
	externalKind subject.Kind
	// note is the note of the frame; nil means none.
	note *wire.Note
	// wake is set when the frame must enqueue the run.
	wake bool
	// recovery is set if the events handle effects of a lost executor.
	recovery bool
}

// add adds an event.
func (p *pending) add(e wire.Event, clean bool) {
	p.bytes += len(e.Payload)
	p.events = append(p.events, e)
	p.clean = append(p.clean, clean)
}

// isFull reports that the events must be appended before others are added.
func (p *pending) isFull() bool { return p.bytes > maxPendingBytes }

// markExternal marks the events so far as events from outside, which make a frame of a kind.
func (p *pending) markExternal(kind subject.Kind) {
	if p.external == 0 && len(p.events) > 0 {
		p.external, p.externalKind = len(p.events), kind
	}
}

// setNote sets the note. The effects that it lists as held and begun remain.
func (p *pending) setNote(n wire.Note) {
	if p.note != nil {
		n.Held, n.Begun = p.note.Held, p.note.Begun
	}
	p.note = &n
}

// noteHeld notes that the effect of a node has not begun.
func (p *pending) noteHeld(id string) {
	n := p.ensureNote()
	n.Begun = without(n.Begun, id)
	n.Held = append(without(n.Held, id), id)
}

// noteBegun notes that the effect of a held node has begun.
func (p *pending) noteBegun(id string) {
	n := p.ensureNote()
	if slices.Contains(n.Held, id) { // the log has not recorded it as held
		n.Held = without(n.Held, id)
	} else {
		n.Begun = append(n.Begun, id)
	}
	if n.Empty() {
		p.note = nil
	}
}

func (p *pending) ensureNote() *wire.Note {
	if p.note == nil {
		p.note = &wire.Note{}
	}
	return p.note
}

func without(ids []string, id string) []string {
	return slices.DeleteFunc(ids, func(s string) bool { return s == id })
}
